//! Values of the contract to values of the core and back: same names, same meanings.

use crate::bindings::exports::strata::memory::{hooks, lifecycle, memory, tools, work};
use crate::bindings::strata::memory::types;
use strata_core::contract as core;

pub(crate) fn failure(failure: core::Failure) -> types::Failure {
    let code = match failure.code {
        core::FailureCode::Busy => types::FailureCode::Busy,
        core::FailureCode::NotOpen => types::FailureCode::NotOpen,
        core::FailureCode::InvalidArgument => types::FailureCode::InvalidArgument,
        core::FailureCode::Unsupported => types::FailureCode::Unsupported,
        core::FailureCode::NotFound => types::FailureCode::NotFound,
        core::FailureCode::TooLarge => types::FailureCode::TooLarge,
        core::FailureCode::Conflict => types::FailureCode::Conflict,
        core::FailureCode::StorageFull => types::FailureCode::StorageFull,
        core::FailureCode::ReadOnly => types::FailureCode::ReadOnly,
        core::FailureCode::Corrupt => types::FailureCode::Corrupt,
        core::FailureCode::NewerVersion => types::FailureCode::NewerVersion,
        core::FailureCode::Io => types::FailureCode::Io,
    };
    types::Failure { code, message: failure.message }
}

pub(crate) fn scope(scope: types::Scope) -> core::Scope {
    core::Scope { team: scope.team, user: scope.user, agent: scope.agent, session: scope.session }
}

fn message(message: types::Message) -> core::Message {
    core::Message {
        id: message.id,
        role: message.role,
        speaker: message.speaker,
        content: message.content,
        structured: message.structured,
        said_at: message.said_at,
    }
}

pub(crate) fn opened(opened: core::Opened) -> lifecycle::Opened {
    lifecycle::Opened { engine_version: opened.engine_version, schema_version: opened.schema_version, resumed_requests: opened.resumed_requests }
}

pub(crate) fn prompt_event(event: hooks::PromptEvent) -> core::PromptEvent {
    core::PromptEvent { scope: scope(event.scope), prompt: event.prompt, turn_id: event.turn_id, query_vector: event.query_vector, at: event.at }
}

pub(crate) fn injection(injection: core::Injection) -> hooks::Injection {
    hooks::Injection {
        stable: injection.stable,
        dynamic: injection.dynamic,
        recalled: injection.recalled,
        cut: injection.cut,
        dropped: injection.dropped,
        partial: injection.partial,
    }
}

pub(crate) fn write_event(event: hooks::WriteEvent) -> core::WriteEvent {
    core::WriteEvent { scope: scope(event.scope), role: event.role, content: event.content }
}

pub(crate) fn tool_event(event: hooks::ToolEvent) -> core::ToolEvent {
    core::ToolEvent {
        scope: scope(event.scope),
        tool_call_id: event.tool_call_id,
        tool_name: event.tool_name,
        arguments_json: event.arguments_json,
        output: event.output,
        is_error: event.is_error,
        duration_ms: event.duration_ms,
        at: event.at,
    }
}

pub(crate) fn tool_receipt(receipt: core::ToolReceipt) -> hooks::ToolReceipt {
    hooks::ToolReceipt { entry: receipt.entry, result_ref: receipt.result_ref, duplicate: receipt.duplicate, filtered: receipt.filtered }
}

pub(crate) fn end_event(event: hooks::EndEvent) -> core::EndEvent {
    core::EndEvent { scope: scope(event.scope), messages: event.messages.into_iter().map(message).collect(), success: event.success, at: event.at }
}

pub(crate) fn capture_report(report: core::CaptureReport) -> hooks::CaptureReport {
    hooks::CaptureReport { stored: report.stored, known: report.known, dropped: report.dropped }
}

pub(crate) fn session_event(event: hooks::SessionEvent) -> core::SessionEvent {
    core::SessionEvent { scope: scope(event.scope), reason: event.reason, at: event.at }
}

pub(crate) fn assemble_request(request: hooks::AssembleRequest) -> core::AssembleRequest {
    core::AssembleRequest {
        scope: scope(request.scope),
        messages_json: request.messages_json,
        window_tokens: request.window_tokens,
        overhead_tokens: request.overhead_tokens,
        model: request.model,
        at: request.at,
    }
}

pub(crate) fn assembled(assembled: core::Assembled) -> hooks::Assembled {
    hooks::Assembled {
        messages_json: assembled.messages_json,
        tokens_before: assembled.tokens_before,
        tokens_after: assembled.tokens_after,
        mode: assembled.mode,
        reason: assembled.reason,
    }
}

pub(crate) fn invocation(invocation: tools::Invocation) -> core::Invocation {
    core::Invocation {
        scope: scope(invocation.scope),
        turn_id: invocation.turn_id,
        name: invocation.name,
        arguments_json: invocation.arguments_json,
        query_vector: invocation.query_vector,
        at: invocation.at,
    }
}

pub(crate) fn answer(answer: core::Answer) -> tools::Answer {
    tools::Answer { text: answer.text, structured_json: answer.structured_json, is_error: answer.is_error }
}

pub(crate) fn outcome(outcome: work::Outcome) -> core::Outcome {
    match outcome {
        work::Outcome::Text(answer) => core::Outcome::Text(core::LlmAnswer {
            text: answer.text,
            model: answer.model,
            input_tokens: answer.input_tokens,
            output_tokens: answer.output_tokens,
        }),
        work::Outcome::Vectors(vectors) => core::Outcome::Vectors(vectors),
        work::Outcome::Failed(why) => core::Outcome::Failed(why),
    }
}

pub(crate) fn selector(selector: memory::Selector) -> core::Selector {
    core::Selector { ids: selector.ids, query: selector.query, session: selector.session, user: selector.user, since: selector.since, until: selector.until }
}

pub(crate) fn search_request(request: memory::SearchRequest) -> core::SearchRequest {
    core::SearchRequest {
        scope: scope(request.scope),
        query: request.query,
        layer: request.layer,
        strategy: request.strategy,
        limit: request.limit,
        query_vector: request.query_vector,
        believed_at: request.believed_at,
        true_at: request.true_at,
        at: request.at,
    }
}
