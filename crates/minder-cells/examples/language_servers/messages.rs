//! The messages of the protocol (LSP 3.17): those of servers are read from cells, and those of this program
//! are written as JSON.

use minder::frame::FrameFormat;
use minder_cells::{Data, View};
use serde_json::{Value as Json, json};

use crate::Failure;
use crate::documents::{Documents, Language};

pub(crate) const INITIALIZE: &str = "initialize";
pub(crate) const COMPLETION: &str = "textDocument/completion";
pub(crate) const SHUTDOWN: &str = "shutdown";

/// A method that this side does not have (JSON-RPC).
const METHOD_NOT_FOUND: i64 = -32601;

/// A message of a server.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Message<'a> {
    /// The answer to a request of ours: a result, or the text of an error.
    Response {
        id: u64,
        result: Result<View<'a>, &'a str>,
    },
    /// A request, which has to be answered.
    Request {
        id: View<'a>,
        method: &'a str,
        params: Option<View<'a>>,
    },
    Notification {
        method: &'a str,
    },
}

impl<'a> Message<'a> {
    pub(crate) fn read(message: View<'a>) -> Result<Self, Failure> {
        let method = message.get("method").and_then(View::as_str);
        match (method, message.get("id")) {
            (Some(method), Some(id)) => Ok(Self::Request { id, method, params: message.get("params") }),
            (Some(method), None) => Ok(Self::Notification { method }),
            (None, Some(id)) => {
                let number = id.as_i64().and_then(|id| u64::try_from(id).ok());
                let id = number.ok_or_else(|| format!("invalid id {}: expected a number", id.to_json()))?;
                let result = match (message.get("error"), message.get("result")) {
                    (None, Some(result)) => Ok(result),
                    (Some(error), _) => {
                        Err(error.get("message").and_then(View::as_str).unwrap_or("an error without a text"))
                    }
                    (None, None) => Err("a response without a result"),
                };
                Ok(Self::Response { id, result })
            }
            (None, None) => Err("a message has neither a method nor an id".into()),
        }
    }
}

/// One text that can be inserted: a part of the answer to a request for completions. The text is
/// the one in the cells.
#[derive(Clone, Copy, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Deserialize))]
pub(crate) struct Completion<'a> {
    pub(crate) label: &'a str,
    /// A `CompletionItemKind`; 0 if the server gives none.
    #[cfg_attr(feature = "serde", serde(default))]
    pub(crate) kind: i64,
}

impl<'a> Completion<'a> {
    /// Reads the answer: a list, an object with a list, or `null`.
    pub(crate) fn read_all(result: View<'a>) -> Result<Vec<Self>, Failure> {
        let items = match result.data() {
            Data::Null => return Ok(Vec::new()),
            Data::Map(_) => result.get("items").ok_or("an answer with completions has no `items`")?,
            _ => result,
        };
        Self::read_list(items)
    }

    #[cfg(feature = "serde")]
    fn read_list(items: View<'a>) -> Result<Vec<Self>, Failure> {
        Ok(minder_cells::from_view(items)?)
    }

    /// Does without serde what its macro writes.
    #[cfg(not(feature = "serde"))]
    fn read_list(items: View<'a>) -> Result<Vec<Self>, Failure> {
        let read = |item: View<'a>| {
            let label = item.get("label").and_then(View::as_str).ok_or("a completion has no label")?;
            Ok(Self { label, kind: item.get("kind").and_then(View::as_i64).unwrap_or(0) })
        };
        items.elements().map(read).collect()
    }

    /// Returns whether it is a method, a function or a constructor.
    pub(crate) fn is_function(self) -> bool {
        matches!(self.kind, 2..=4)
    }
}

/// Appends a message with its header.
pub(crate) fn encode(message: &Json, out: &mut Vec<u8>) -> Result<(), Failure> {
    Ok(FrameFormat::ContentLength.encode(message.to_string().as_bytes(), out)?)
}

pub(crate) fn request(id: u64, method: &str, params: Json) -> Json {
    let mut request = notification(method, params);
    request["id"] = id.into();
    request
}

/// Returns a notification. `null` stands for no parameters.
pub(crate) fn notification(method: &str, params: Json) -> Json {
    let mut notification = json!({"jsonrpc": "2.0", "method": method});
    if !params.is_null() {
        notification["params"] = params;
    }
    notification
}

/// Returns the response to a request of a server.
pub(crate) fn response(
    id: View<'_>,
    method: &str,
    params: Option<View<'_>>,
    root_uri: &str,
) -> Result<Json, Failure> {
    let result = match method {
        "window/workDoneProgress/create"
        | "window/showMessageRequest"
        | "client/registerCapability"
        | "client/unregisterCapability" => Json::Null,
        // `null` for each item: the server uses its defaults.
        "workspace/configuration" => {
            let items = params.and_then(|params| params.get("items"));
            Json::Array(vec![Json::Null; items.map_or(0, |items| items.elements().len())])
        }
        "workspace/workspaceFolders" => json!([{"uri": root_uri, "name": "example"}]),
        "workspace/applyEdit" => json!({"applied": false}),
        _ => {
            let error = json!({"code": METHOD_NOT_FOUND, "message": format!("unknown method `{method}`")});
            return Ok(json!({"jsonrpc": "2.0", "id": same(id)?, "error": error}));
        }
    };
    Ok(json!({"jsonrpc": "2.0", "id": same(id)?, "result": result}))
}

/// Returns the id of a request, which may be a number or a text, for its response.
fn same(id: View<'_>) -> Result<Json, Failure> {
    Ok(serde_json::from_str(&id.to_json())?)
}

pub(crate) fn initialize(documents: &Documents) -> Json {
    json!({
        "processId": std::process::id(),
        "rootUri": documents.root_uri(),
        "workspaceFolders": [{"uri": documents.root_uri(), "name": "example"}],
        "capabilities": {
            "window": {"workDoneProgress": true},
            "workspace": {
                "configuration": true,
                "workspaceFolders": true,
                "didChangeConfiguration": {"dynamicRegistration": true},
            },
            "textDocument": {
                "completion": {"dynamicRegistration": true, "completionItem": {"snippetSupport": true}},
                "publishDiagnostics": {"versionSupport": true},
            },
        },
    })
}

pub(crate) fn did_open(uri: &str, language: Language) -> Json {
    let document = json!({"uri": uri, "languageId": language.id(), "version": 1, "text": language.text()});
    notification("textDocument/didOpen", json!({"textDocument": document}))
}

pub(crate) fn completion(uri: &str, (line, character): (usize, usize)) -> Json {
    json!({"textDocument": {"uri": uri}, "position": {"line": line, "character": character}})
}
