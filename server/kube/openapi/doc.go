// Package openapi describes the Kubernetes API that podd serves, in the words
// of OpenAPI, for kubectl explain, for the checks that kubectl apply and create
// make, and for the merge keys of patches:
//
//	GET  /openapi/v3                            the group versions, with hashes
//	GET  /openapi/v3/api/v1                     one of them, as JSON
//	GET  /openapi/v3/apis/{group}/{version}
//	GET  /openapi/v2                            all in one, as JSON or protobuf
//
// Everything is read from the Go types: fields and merge keys by reflection,
// texts from SwaggerDoc. What comments alone tell the apiserver's generator,
// which lists are maps, which fields without omitempty are optional, stands in
// the tables of marker.go.
//
//	[]Resource ─▶ models (schemas) ┐
//	           ─▶ paths            ┴▶ OpenAPI v3, by group version ─▶ OpenAPI v2
//
// # What kubectl asks of it
//
// apply and create leave the check of fields to the server if the version 3
// document has a PATCH of the kind with the query parameter fieldValidation.
// Without one they check by version 2 themselves: a server that refuses writes in
// its own words does better to list their verbs all the same.
// apply then makes a strategic merge patch, if the PATCH takes that media type,
// with the x-kubernetes-patch-… of the schema that has the kind.
// Version 2 is read then, for a file of kind List and by explain -o
// plaintext-openapiv2, and as protobuf only: kubectl takes the answer for that
// whatever type it says it has.
//
// Documents are made when they are first asked for and then kept compressed.
package openapi
