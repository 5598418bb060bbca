// Package tools is empty. The tool directives in the go.mod of its module pin the versions of the
// programs that cmd/package runs. The module is nested so that podd itself does not depend on the
// many modules of these programs.
package tools
