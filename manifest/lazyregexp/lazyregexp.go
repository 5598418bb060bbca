// Package lazyregexp compiles regular expressions at their first use, because a compiled expression
// takes memory that most processes would never use.
package lazyregexp

import (
	"regexp"
	"sync"
)

// New returns a function that returns the compiled expression. The function compiles it at the first
// call, and panics if expr is invalid. It may be called by several goroutines.
func New(expr string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expr) })
}
