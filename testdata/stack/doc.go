// Package stack is empty. The tool lines in the go.mod of its module pin the container runtime
// with which podd is tried and tested. Package podd/runtime/runtimetest/stack/tools builds it.
// The module is nested so that podd itself does not depend on it.
package stack
