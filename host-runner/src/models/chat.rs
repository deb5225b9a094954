//! Chat completions, as OpenAI-compatible endpoints have them: the body to send, the answer to read.

use crate::contract::{LlmAnswer, LlmRequest};
use serde_json::{Value, json};

/// Returns the body of a request. The schema goes along where the model obeys one.
pub(super) fn body(model: &str, json_schema: bool, request: &LlmRequest) -> Value {
    let mut messages = Vec::new();
    if !request.system.is_empty() {
        messages.push(json!({"role": "system", "content": request.system}));
    }
    messages.push(json!({"role": "user", "content": request.prompt}));
    let mut body = json!({"model": model, "messages": messages, "max_tokens": request.max_tokens, "temperature": 0, "stream": false});
    if json_schema && !request.schema_json.is_empty() {
        // A schema that is no JSON is the engine's fault; the endpoint gets the question without it.
        if let Ok(schema) = serde_json::from_str::<Value>(&request.schema_json) {
            body["response_format"] = json!({"type": "json_schema", "json_schema": {"name": request.purpose, "schema": schema}});
        }
    }
    body
}

/// Returns the answer in a response. A text that is cut at the token limit is still an answer.
pub(super) fn answer(response: &Value) -> Result<LlmAnswer, String> {
    let message = response.pointer("/choices/0/message").ok_or("the endpoint's answer has no choices[0].message")?;
    let text = match message.get("content") {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Array(parts)) => parts.iter().filter_map(|part| part.get("text").and_then(Value::as_str)).collect(),
        _ => return Err(refusal(message)),
    };
    let tokens = |name: &str| response.pointer(&format!("/usage/{name}")).and_then(Value::as_u64).and_then(|count| u32::try_from(count).ok());
    Ok(LlmAnswer {
        text,
        model: response.get("model").and_then(Value::as_str).unwrap_or_default().to_owned(),
        input_tokens: tokens("prompt_tokens"),
        output_tokens: tokens("completion_tokens"),
    })
}

fn refusal(message: &Value) -> String {
    match message.get("refusal").and_then(Value::as_str) {
        Some(words) => format!("the model refused: {words}"),
        None => "the endpoint's answer has no text".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(schema: &str) -> LlmRequest {
        LlmRequest { purpose: "l1-extract".into(), system: "S".into(), prompt: "P".into(), schema_json: schema.into(), max_tokens: 9, timeout_ms: 1 }
    }

    #[test]
    fn a_schema_goes_along_only_where_the_model_obeys_one() {
        let with = body("m", true, &request(r#"{"type":"object"}"#));
        assert_eq!(with["response_format"]["json_schema"]["schema"]["type"], "object");
        assert_eq!(with["max_tokens"], 9);
        assert_eq!(body("m", false, &request(r#"{"type":"object"}"#)).get("response_format"), None);
        assert_eq!(body("m", true, &request("")).get("response_format"), None);
    }

    #[test]
    fn an_answer_has_text_and_the_tokens_that_were_reported() {
        let response = json!({"model": "m1", "choices": [{"message": {"content": "[]"}}], "usage": {"prompt_tokens": 7, "completion_tokens": 2}});
        assert_eq!(answer(&response), Ok(LlmAnswer { text: "[]".into(), model: "m1".into(), input_tokens: Some(7), output_tokens: Some(2) }));
        let parts = json!({"choices": [{"message": {"content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}}]});
        assert_eq!(answer(&parts).map(|answer| answer.text), Ok("ab".into()));
    }

    #[test]
    fn an_answer_without_text_is_a_failure_with_words() {
        assert!(answer(&json!({"error": "x"})).is_err());
        assert_eq!(answer(&json!({"choices": [{"message": {"content": null, "refusal": "no"}}]})), Err("the model refused: no".into()));
    }
}
