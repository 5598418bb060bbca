// Package journal stores the history of pods on disk, in the file journal.json of each pod
// directory. A journal is replaced as a whole. An unreadable journal is never removed,
// because it may record that its pod has terminated. Either its directory becomes an Orphan,
// or the journal is renamed when a new one is written.
package journal
