// Package cli contains the verbs that connect to a running podd: kubectl's, such as get
// and exec, and podd's own, such as ps and why. Each verb is a type that kong fills from
// the command line, with a Run method. A large verb has several files, whose names begin
// with that of the verb.
//
// Package client sends the requests, and package printer formats tables and texts.
package cli
