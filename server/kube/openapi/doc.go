// Package openapi serves OpenAPI documents that describe podd's Kubernetes API. kubectl explain prints
// them, kubectl apply and create validate fields with them, and patches use their merge keys:
//
//	GET  /openapi/v3                            the group versions, with hashes
//	GET  /openapi/v3/api/v1                     one group version, as JSON
//	GET  /openapi/v3/apis/{group}/{version}
//	GET  /openapi/v2                            an empty document, as protobuf
//
// The documents are generated from the Go types: fields and merge keys by reflection, descriptions
// from SwaggerDoc. The tables in marker.go contain the information that is available only in
// comments of the Go types, such as which lists are maps and which fields without omitempty are
// optional.
//
//	[]Resource ─▶ models (schemas) ┐
//	           ─▶ paths            ┴▶ OpenAPI version 3, by group version
//
// # How kubectl uses the documents
//
// kubectl apply and kubectl create do not validate fields themselves if the document contains a
// PATCH of the kind with the query parameter fieldValidation. A document should therefore list the
// verbs of writes even if the server rejects them. Then kubectl reports the server's message.
// kubectl apply sends a strategic merge patch if the PATCH accepts that media type. It computes the
// patch with the x-kubernetes-patch-… extensions of the kind's schema.
//
// The version 2 document at /openapi/v2 is empty. kubectl reads it for files of kind List and for
// kinds without such a PATCH. It does not validate objects whose kind is not in the document, so
// the server validates the items of a List. Without any document, kubectl would reject a List.
//
// Documents are generated when they are first requested and are then stored compressed.
package openapi
