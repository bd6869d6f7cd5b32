//! Messages as they were sent, in pieces of any size, and bytes that are none.

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;

use super::*;

fn bytes() -> impl Strategy<Value = Vec<u8>> {
    vec(any::<u8>(), 0..40)
}

fn os_bytes() -> impl Strategy<Value = OsBytes> {
    bytes().prop_map(OsBytes)
}

fn start() -> impl Strategy<Value = Start> {
    let lists = (vec(os_bytes(), 0..4), vec((os_bytes(), os_bytes()), 0..4), option::of(os_bytes()));
    let texts = (any::<String>(), any::<u32>(), any::<String>(), option::of(any::<String>()));
    (texts, lists).prop_map(|((run, attempt, text, jobs), (names, env, dir))| Start {
        login: run.clone(),
        run,
        attempt,
        manifest: serde_json::json!({ "command": [text], "number": attempt }),
        removed: names.clone(),
        names,
        jobs,
        env,
        dir: dir.map_or(JobsDir::Temporary, JobsDir::Named),
    })
}

fn to_agent() -> impl Strategy<Value = ToAgent> {
    let list = || vec(os_bytes(), 0..5);
    let job = (any::<u64>(), list(), list(), list());
    prop_oneof![
        start().prop_map(|start| ToAgent::Start(Box::new(start))),
        job.prop_map(|(number, columns, returned, removed)| ToAgent::Job {
            number,
            columns,
            returned,
            removed
        }),
        Just(ToAgent::Finish),
        Just(ToAgent::Cancel),
        any::<u64>().prop_map(ToAgent::Beat),
        Just(ToAgent::Taken),
    ]
}

fn from_agent() -> impl Strategy<Value = FromAgent> {
    let hello = (any::<u32>(), any::<String>(), any::<String>());
    prop_oneof![
        hello.prop_map(|(protocol, version, node)| FromAgent::Hello(Hello { protocol, version, node })),
        any::<u64>().prop_map(FromAgent::Ready),
        any::<String>().prop_map(FromAgent::Refused),
        ("[a-z0-9-]{0,20}", bytes()).prop_map(|(file, bytes)| FromAgent::Output { file, bytes }),
        bytes().prop_map(FromAgent::Journal),
        any::<u64>().prop_map(FromAgent::Beat),
        Just(FromAgent::Taken),
        Just(FromAgent::End),
    ]
}

/// Decodes bytes that arrive in pieces of this size.
fn decode<M: Message>(bytes: &[u8], piece: usize) -> io::Result<Vec<M>> {
    let mut decoder = Decoder::new();
    let mut messages = Vec::new();
    for mut piece in bytes.chunks(piece) {
        while let Some(message) = decoder.next(&mut piece)? {
            messages.push(message);
        }
        assert!(piece.is_empty(), "an incomplete message takes all bytes");
    }
    Ok(messages)
}

fn encode<M: Message>(messages: &[M]) -> Vec<u8> {
    let mut bytes = Vec::new();
    assert!(messages.iter().all(|message| message.encode(&mut bytes)));
    bytes
}

proptest! {
    #[test]
    fn messages_arrive_as_they_were_sent(
        to in vec(to_agent(), 0..6),
        from in vec(from_agent(), 0..6),
        piece in 1_usize..100,
    ) {
        prop_assert_eq!(decode::<ToAgent>(&encode(&to), piece)?, to);
        prop_assert_eq!(decode::<FromAgent>(&encode(&from), piece)?, from);
    }

    #[test]
    fn any_bytes_are_messages_or_an_error(bytes in vec(any::<u8>(), 0..200), piece in 1_usize..50) {
        let _ = decode::<ToAgent>(&bytes, piece);
        let _ = decode::<FromAgent>(&bytes, piece);
    }

    #[test]
    fn any_content_of_each_kind_is_a_message_or_none(kind in any::<u8>(), content in bytes()) {
        if let Some(message) = ToAgent::read(kind, &content) {
            prop_assert_eq!(decode::<ToAgent>(&encode(std::slice::from_ref(&message)), 7)?, [message]);
        }
        if let Some(message) = FromAgent::read(kind, &content) {
            prop_assert_eq!(decode::<FromAgent>(&encode(std::slice::from_ref(&message)), 7)?, [message]);
        }
    }

    #[test]
    fn damaged_messages_are_other_messages_or_an_error(
        from in vec(from_agent(), 1..4),
        at in any::<prop::sample::Index>(),
        value in any::<u8>(),
    ) {
        let mut bytes = encode(&from);
        let at = at.index(bytes.len());
        bytes[at] = value;
        let _ = decode::<FromAgent>(&bytes, 16);
    }
}

#[test]
fn message_that_is_too_long_is_not_sent() {
    let mut bytes = Vec::new();
    // The kind takes one byte.
    assert!(FromAgent::Journal(vec![b'x'; MESSAGE_MAX - 1]).encode(&mut bytes));
    assert_eq!(decode::<FromAgent>(&bytes, 1 << 20).expect("decode").len(), 1);
    bytes.clear();
    assert!(!FromAgent::Journal(vec![b'x'; MESSAGE_MAX]).encode(&mut bytes));
    assert!(bytes.is_empty());
    // One that says that it is longer.
    let length = u32::try_from(MESSAGE_MAX + 1).expect("short").to_be_bytes();
    assert!(decode::<FromAgent>(&[&length[..], b"l"].concat(), 16).is_err());
    // A message has a kind.
    assert!(decode::<FromAgent>(&[0; 4], 16).is_err());
}

#[test]
fn agent_is_dead_before_its_jobs_run_elsewhere() {
    // The deadline of an agent that hangs is three seconds later, and a guardian kills it two seconds later.
    assert!(AGENT_SILENCE_MAX + Duration::from_secs(3 + 2) < LINK_SILENCE_MAX);
    assert!(BEAT_INTERVAL * 2 < AGENT_SILENCE_MAX);
}
