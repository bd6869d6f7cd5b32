//! Combines several sources: all combinations, or side by side.

use anyhow::Result;

use crate::input::Record;
use crate::input::records::Records;
use crate::input::replay_buffer::ReplayBuffer;
use crate::input::replay_buffer::ReplayCursor;

/// All sources together. The last one changes fastest.
#[derive(Debug)]
pub(crate) struct Combined {
    groups: Vec<Group>,
    /// The current record of each group. Empty before the first combination.
    current: Vec<Record>,
    finished: bool,
}

/// Sources that are read side by side.
#[derive(Debug)]
struct Group {
    sources: Vec<SourceReader>,
    /// `true` if shorter sources start again, so that the longest one decides.
    wraps: bool,
}

/// One source, which may be read again.
#[derive(Debug)]
struct SourceReader {
    records: Records,
    /// The records that were read, if they have to be read again.
    buffer: Option<ReplayBuffer>,
    cursor: ReplayCursor,
    /// `true` if the end of the source was reached once.
    ended: bool,
    /// `true` if a source without records yields one empty value.
    fills: bool,
    /// `true` if that value was yielded.
    filled: bool,
}

impl Combined {
    /// Combines `sources`; each has a flag for whether it is linked to the one before it. With
    /// `link`, all are linked. With `empty_counts`, a source without records next to others counts
    /// as one empty value.
    pub(crate) fn new(sources: Vec<(Records, bool)>, link: bool, empty_counts: bool) -> Self {
        let fills = empty_counts && sources.len() > 1;
        let mut groups: Vec<Group> = Vec::new();
        for (records, linked) in sources {
            let cursor = ReplayCursor::default();
            let source = SourceReader { records, buffer: None, cursor, ended: false, fills, filled: false };
            match groups.last_mut() {
                Some(group) if linked || link => group.sources.push(source),
                _ => groups.push(Group { sources: vec![source], wraps: link }),
            }
        }
        for (place, group) in groups.iter_mut().enumerate() {
            let is_reread = place > 0 || (group.wraps && group.sources.len() > 1);
            group.sources.iter_mut().for_each(|source| source.buffer = is_reread.then(ReplayBuffer::default));
        }
        Self { groups, current: Vec::new(), finished: false }
    }

    /// Returns the next combination.
    pub(crate) fn next(&mut self) -> Result<Option<Record>> {
        if !self.finished && !self.step()? {
            self.finished = true;
        }
        Ok((!self.finished).then(|| self.take_current()))
    }

    /// Advances to the next combination. Returns `false` at the end.
    fn step(&mut self) -> Result<bool> {
        if self.current.is_empty() {
            for group in &mut self.groups {
                match group.next()? {
                    Some(record) => self.current.push(record),
                    None => return Ok(false),
                }
            }
            // If no source has a record, there is nothing to run.
            return Ok(self.groups.iter().flat_map(|group| &group.sources).any(|source| !source.filled));
        }
        for place in (0..self.groups.len()).rev() {
            if let Some(record) = self.groups[place].next()? {
                self.current[place] = record;
                return Ok(true);
            }
            if place > 0 {
                self.groups[place].rewind();
                match self.groups[place].next()? {
                    Some(record) => self.current[place] = record,
                    None => return Ok(false),
                }
            }
        }
        Ok(false)
    }

    /// Returns the current combination. That of a single group is moved, since no other one needs it.
    fn take_current(&mut self) -> Record {
        if let ([_], Some(only)) = (self.groups.as_slice(), self.current.first_mut()) {
            return std::mem::replace(only, Record::Columns(Vec::new()));
        }
        let mut all = Vec::new();
        for record in &self.current {
            match record {
                Record::Columns(columns) => all.extend(columns.iter().cloned()),
                Record::Unfit(why) => return Record::Unfit(*why),
            }
        }
        Record::Columns(all)
    }
}

impl Group {
    fn next(&mut self) -> Result<Option<Record>> {
        let mut all = Vec::new();
        let mut fresh = false;
        let mut unfit = None;
        for source in &mut self.sources {
            let (record, is_new) = source.next(self.wraps)?;
            fresh |= is_new;
            match record {
                Some(Record::Columns(columns)) if all.is_empty() => all = columns,
                Some(Record::Columns(columns)) => all.extend(columns),
                Some(Record::Unfit(why)) => unfit = Some(why),
                None if self.wraps => (),
                None => return Ok(None),
            }
        }
        Ok(fresh.then(|| unfit.map_or(Record::Columns(all), Record::Unfit)))
    }

    fn rewind(&mut self) {
        for source in &mut self.sources {
            source.cursor.rewind();
            // From now on it is read from the buffer.
            source.ended = true;
        }
    }
}

impl SourceReader {
    /// Returns the next record, and whether the source advanced instead of starting again.
    fn next(&mut self, wraps: bool) -> Result<(Option<Record>, bool)> {
        let Some(buffer) = &mut self.buffer else {
            let record = match self.records.next()? {
                None if std::mem::take(&mut self.fills) => {
                    self.filled = true;
                    Some(Record::Columns(vec![Default::default()]))
                }
                record => record,
            };
            self.fills &= record.is_none();
            let fresh = record.is_some();
            return Ok((record, fresh));
        };
        if !self.ended {
            let fills = std::mem::take(&mut self.fills);
            let record = match self.records.next()? {
                None if fills => {
                    self.filled = true;
                    Some(Record::Columns(vec![Default::default()]))
                }
                record => record,
            };
            if let Some(record) = record {
                buffer.push(&record)?;
                return Ok((Some(record), true));
            }
            self.ended = true;
            if !wraps {
                return Ok((None, false));
            }
            self.cursor.rewind();
            return Ok((self.cursor.next(buffer)?, false));
        }
        match self.cursor.next(buffer)? {
            None if wraps => {
                self.cursor.rewind();
                Ok((self.cursor.next(buffer)?, false))
            }
            record => {
                let fresh = record.is_some() && !wraps;
                Ok((record, fresh))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::input::ArgsPerJob;
    use crate::input::Header;
    use crate::input::InputPlan;
    use crate::input::Kind;
    use crate::input::Source;
    use crate::input::Trim;

    fn all(sources: &[(&str, bool)], link: bool) -> Vec<String> {
        let plan = InputPlan {
            sources: Vec::new(),
            separator: b"\n".to_vec(),
            windows_text: false,
            findings: std::sync::Arc::default(),
            skip_comments: false,
            words: None,
            columns: None,
            header: Header::None,
            trim: Trim::default(),
            eof: None,
            skip_blank: false,
            skip_first: false,
            empty_counts: false,
            link,
            arity: ArgsPerJob::default(),
        };
        let open = |(words, linked): &(&str, bool)| {
            let words = words.split_whitespace().map(Into::into).collect();
            let source = Source { kind: Kind::Arguments(words), linked: *linked };
            (Records::open(&source, &plan).expect("words"), *linked)
        };
        let mut combined = Combined::new(sources.iter().map(open).collect(), link, false);
        let mut got = Vec::new();
        while let Some(record) = combined.next().expect("words") {
            let Record::Columns(columns) = record else { panic!("every record fits") };
            got.push(columns.iter().map(|value| value.to_string_lossy()).collect::<Vec<_>>().join(""));
        }
        got
    }

    #[test]
    fn sources_are_combined_like_gnu_parallel() {
        assert_eq!(all(&[("a b c", false)], false), ["a", "b", "c"]);
        assert_eq!(all(&[("a b", false), ("1 2 3", false)], false), ["a1", "a2", "a3", "b1", "b2", "b3"]);
        assert_eq!(all(&[("a b", false), ("", false)], false), [""; 0]);
        assert_eq!(all(&[("a b c", false), ("1 2", true)], false), ["a1", "b2"]);
        assert_eq!(
            all(&[("a b", false), ("1 2", true), ("x y", false)], false),
            ["a1x", "a1y", "b2x", "b2y"]
        );
        let inner = [("x y", false), ("a b", false), ("1 2 3", true)];
        assert_eq!(all(&inner, false), ["xa1", "xb2", "ya1", "yb2"]);
        assert_eq!(all(&[("a b c", false), ("1 2", false)], true), ["a1", "b2", "c1"]);
        assert_eq!(all(&[("a b", false), ("1 2", true), ("x y z", false)], true), ["a1x", "b2y", "a1z"]);
        let three = [("1 2", false), ("p q r s", false), ("x y z", false)];
        assert_eq!(all(&three, true), ["1px", "2qy", "1rz", "2sx"]);
    }
}
