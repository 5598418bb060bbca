// Package cli contains the verbs that connect to a running podd. Some are kubectl's, such as get
// and exec; others are podd's own, such as ps and why. Each verb is a type with a Run method; kong
// fills its fields from the command line. If the code of a verb is in several files, the names of
// these files begin with the name of the verb.
//
// Package client sends the requests. Package printer formats tables and texts.
package cli
