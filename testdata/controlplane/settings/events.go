package main

import (
	"go/ast"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// reasonsDir is the directory of the package with the kubelet's constants for the reasons of events.
const reasonsDir = "/pkg/kubelet/events"

// reasonArgument contains the index of the reason in the arguments of the functions that record events.
var reasonArgument = map[string]int{"Event": 2, "Eventf": 2, "AnnotatedEventf": 3, "recordEventFunc": 2}

// reasonPattern matches a reason of an event.
var reasonPattern = regexp.MustCompile(`^[A-Z][A-Za-z0-9]+$`)

// eventReasons returns the reasons of events, one a line: the constants of the package events of the kubelet,
// and all other constants with which the kubelet records events. It omits reasons that are not constants,
// such as those of rejected pods.
func eventReasons() (string, error) {
	s, err := readSource()
	if err != nil {
		return "", err
	}
	reasons := map[string]bool{}
	for dir, constants := range s.packages {
		if strings.HasSuffix(dir, reasonsDir) {
			for _, reason := range *constants {
				reasons[reason] = true
			}
		}
	}
	for _, f := range s.files {
		ast.Inspect(f.File, func(n ast.Node) bool {
			if c, ok := n.(*ast.CallExpr); ok {
				if i := reasonArgument[calledName(c)]; i > 0 && len(c.Args) > i {
					if reason, ok := s.evaluate(filepath.Dir(f.path), c.Args[i]); ok && reasonPattern.MatchString(reason) {
						reasons[reason] = true
					}
				}
			}
			return true
		})
	}
	return strings.Join(slices.Sorted(maps.Keys(reasons)), "\n") + "\n", nil
}
