// Package document parses YAML and JSON text into the values that an API server would read,
// and finds the line and column of every value. The text may be hostile: its size and depth,
// the number of its documents and nodes, and the expansion of aliases are limited.
package document
