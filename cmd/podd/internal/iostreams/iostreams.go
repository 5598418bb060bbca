// Package iostreams defines the standard streams of a verb.
package iostreams

import "io"

// Streams contains the input and output of a verb. Out is for data, Err for diagnostics.
type Streams struct {
	In       io.Reader
	Out, Err io.Writer
}
