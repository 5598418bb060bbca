// Package resource defines the resources that the Kubernetes API serves and how their
// objects are shown:
//
//	View ─▶ Definition.Items ─▶ Item ─▶ Definition.Entry ─▶ Entry ─▶ Form ─▶ JSON
//
// An Item is an object as podd has it, an Entry the same object with its kind and
// revision, and a Form the representation that a client requests: the object, its
// metadata or a table.
//
// Objects are shared and never modified.
package resource
