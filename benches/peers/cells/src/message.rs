//! A message as language servers send it: a list of completions, of about 2.4 MB.

/// The completions in the message.
pub(crate) const ITEMS: usize = 4_000;

/// Returns the message, which is the same in every run.
pub(crate) fn completions() -> String {
    let mut text = String::from(r#"{"jsonrpc":"2.0","id":42,"result":{"isIncomplete":false,"items":["#);
    for item in 0..ITEMS {
        if item > 0 {
            text.push(',');
        }
        let line = item % 700;
        let name = format!("complete_{item}_with_a_name");
        let kind = item % 25 + 1;
        let range =
            format!(r#"{{"start":{{"line":{line},"character":12}},"end":{{"line":{line},"character":17}}}}"#);
        let about = format!(
            r#"Returns the element at `index`.\n\nIt is `None` without \"such\" an element — number {item}."#
        );
        let parts = [
            format!(r#"{{"label":"{name}","kind":{kind},"sortText":"{:08x}""#, item * 7919),
            format!(r#""detail":"fn(&self, index: usize, other: &[T{item}]) -> Option<&T>""#),
            format!(r#""documentation":{{"kind":"markdown","value":"{about} See [`get`](Self::get)."}}"#),
            format!(r#""deprecated":false,"preselect":{},"filterText":"{name}""#, item == 0),
            format!(r#""insertTextFormat":2,"textEdit":{{"range":{range},"newText":"{name}($0)"}}"#),
            format!(r#""additionalTextEdits":[],"data":{{"file":"src/lib.rs","version":{}"#, item * 31),
            format!(r#""score":{}.25}}}}"#, item % 100),
        ];
        text.push_str(&parts.join(","));
    }
    text.push_str("]}}");
    text
}
