// Package journal stores the history of pods on disk, in the file journal.json of each pod
// directory. A journal is replaced as a whole. One that cannot be read is never removed,
// because it may record that its pod has ended: the directory becomes an Orphan, or the
// journal is kept under another name.
package journal
