// Package tools is empty. The tool lines in the go.mod of its module pin the programs that
// cmd/package runs. The module is nested so that podd itself does not depend on the many modules of
// these programs.
package tools
