// Package schema compares documents with the Go types that they are decoded into. It reports
// unknown fields with a suggestion, duplicate fields and values of a wrong type, as strict
// decoding in an API server does, and finds the position of every field.
package schema
