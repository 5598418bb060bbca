// Package journal stores the history of pods on disk, in the file journal.json of each pod
// directory. Each write replaces the whole journal. An unreadable journal is never removed, because
// it may record that its pod has terminated. The directory of an unreadable journal is an Orphan.
// If podd writes a new journal into the directory, it keeps the unreadable journal under another
// name.
package journal
