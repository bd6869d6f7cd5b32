//! The message as typed values.

use serde::{Deserialize, Serialize};

#[derive(Debug, Deserialize, PartialEq, Serialize)]
pub(crate) struct Answer {
    pub(crate) jsonrpc: String,
    pub(crate) id: u64,
    pub(crate) result: Completions,
}

#[derive(Debug, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Completions {
    pub(crate) is_incomplete: bool,
    pub(crate) items: Vec<Completion>,
}

#[derive(Debug, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Completion {
    label: String,
    kind: u8,
    sort_text: String,
    detail: String,
    documentation: Documentation,
    deprecated: bool,
    preselect: bool,
    filter_text: String,
    insert_text_format: u8,
    text_edit: TextEdit,
    additional_text_edits: Vec<TextEdit>,
    data: Data,
}

#[derive(Debug, Deserialize, PartialEq, Serialize)]
struct Documentation {
    kind: String,
    value: String,
}

#[derive(Debug, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
struct TextEdit {
    range: Range,
    new_text: String,
}

#[derive(Debug, Deserialize, PartialEq, Serialize)]
struct Range {
    start: Position,
    end: Position,
}

#[derive(Debug, Deserialize, PartialEq, Serialize)]
struct Position {
    line: u32,
    character: u32,
}

#[derive(Debug, Deserialize, PartialEq, Serialize)]
struct Data {
    file: String,
    version: u64,
    score: f64,
}
