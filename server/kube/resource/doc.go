// Package resource defines the resources that the Kubernetes API serves and how their objects are
// represented:
//
//	View ─▶ Definition.Items ─▶ Item ─▶ Definition.NewEntry ─▶ Entry ─▶ Encoder ─▶ JSON
//
// An Item is an object of podd's published state. An Entry is an object with its kind and revision.
// An Encoder encodes entries in the representation that the client requests: the object, its
// metadata or a table. Objects are shared and never modified.
package resource
