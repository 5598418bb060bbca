// Package schema compares documents with the Go types into which they are decoded. Like the
// strict decoding of an API server, it reports unknown fields, duplicate fields and values of a
// wrong type. It suggests corrections of unknown fields, and finds the position of every field.
package schema
