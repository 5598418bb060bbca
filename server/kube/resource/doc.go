// Package resource defines the resources that the Kubernetes API serves and how their
// objects are shown:
//
//	View ─▶ Definition.Items ─▶ Item ─▶ Definition.Entry ─▶ Entry ─▶ Form ─▶ JSON
//
// An Item is an object of podd's published state. An Entry is an object with its kind and
// revision. A Form is the representation that a client requests: the object, its metadata
// or a table. Objects are shared and never modified.
package resource
