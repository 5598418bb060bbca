// Package stack is empty: its module only pins, with the tool lines of
// go.mod, the container runtime that podd is run and tested on. Package
// podd/runtime/runtimetest/stack/tools builds it. The module is nested so
// that none of it reaches podd's own dependencies.
package stack
