// Package junit reads the JUnit reports of ginkgo, the test runner of Kubernetes.
package junit

import (
	"encoding/xml"
	"fmt"
	"os"
	"strings"
)

// A Report contains the results of the specs in a suite.
type Report struct {
	Passed   []string          // names of specs
	Failures []string          // "NAME: STATUS: MESSAGE" of each spec or setup step, such as [BeforeSuite], that did not pass
	Skipped  map[string]string // the reasons of specs that skipped themselves, by name
	Excluded []string          // names of specs that the focus or skip expressions excluded
}

// testSuites is the content of a report.
type testSuites struct {
	Suites []struct {
		Cases []testCase `xml:"testcase"`
	} `xml:"testsuite"`
}

type testCase struct {
	Name    string `xml:"name,attr"`
	Status  string `xml:"status,attr"`
	Failure string `xml:"failure"`
	Skipped struct {
		Message string `xml:"message,attr"`
	} `xml:"skipped"`
}

// Read reads the JUnit report in a file.
func Read(file string) (Report, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return Report{}, err
	}
	var suites testSuites
	if err := xml.Unmarshal(text, &suites); err != nil {
		return Report{}, fmt.Errorf("reading the JUnit report %s: %w", file, err)
	}
	r := Report{Skipped: map[string]string{}}
	for _, s := range suites.Suites {
		for _, c := range s.Cases {
			r.add(c)
		}
	}
	return r, nil
}

// add adds the result of a spec. It ignores results that belong to no spec, unless they are
// failures.
func (r *Report) add(c testCase) {
	name, isSpec := strings.CutPrefix(c.Name, "[It] ")
	reason, skippedItself := strings.CutPrefix(c.Skipped.Message, "skipped - ")
	switch {
	case c.Status == "skipped" && skippedItself:
		r.Skipped[name] = reason
	case c.Status == "skipped" && isSpec:
		r.Excluded = append(r.Excluded, name)
	case c.Status == "passed" && isSpec:
		r.Passed = append(r.Passed, name)
	case c.Status != "passed" && c.Status != "skipped":
		r.Failures = append(r.Failures, fmt.Sprintf("%s: %s: %s", c.Name, c.Status, c.Failure))
	}
}
