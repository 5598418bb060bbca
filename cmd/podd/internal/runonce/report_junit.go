package runonce

import (
	"encoding/xml"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
)

// writeJUnit writes the report of a run in the JUnit format, which CI systems read. The report contains
// a test case for each row.
func writeJUnit(w io.Writer, r *runResult) error {
	pods := map[string]int{}
	for i := range r.Rows {
		pods[r.Rows[i].Namespace+"/"+r.Rows[i].Pod]++
	}
	var cases []xmlElement
	counts := map[string]int{} // number of test cases by the result of junitProblem
	for i := range r.Rows {
		row := &r.Rows[i]
		name := row.Name
		// Omit the name of the container, so that the test case has the same name as if the pod had
		// succeeded.
		if pods[row.Namespace+"/"+row.Pod] == 1 {
			name = strings.TrimSuffix(name, "/"+row.Container)
		}
		counts[junitProblem(row)]++
		cases = append(cases, newJUnitCase(row, name))
	}
	startTime := ""
	if !r.StartTime.IsZero() {
		startTime = r.StartTime.UTC().Format("2006-01-02T15:04:05")
	}
	suite := xmlElement{name: "testsuite", children: cases, attributes: []xmlAttribute{
		{"name", "podd"},
		{"tests", strconv.Itoa(len(r.Rows))},
		{"failures", strconv.Itoa(counts["failure"])},
		{"errors", strconv.Itoa(counts["error"])},
		{"skipped", strconv.Itoa(counts["skipped"])},
		{"time", formatSeconds(r.Duration)},
		{"timestamp", startTime},
	}}
	suites := xmlElement{name: "testsuites", children: []xmlElement{suite}}
	_, err := io.WriteString(w, xml.Header+suites.format(""))
	return err
}

// newJUnitCase returns the test case with the given name for a row.
func newJUnitCase(row *resultRow, name string) xmlElement {
	class := "podd"
	if row.Namespace != "" {
		class = row.Namespace + "." + row.Pod
	}
	c := xmlElement{name: "testcase", attributes: []xmlAttribute{
		{"classname", class}, {"name", name}, {"file", row.Position}, {"time", formatSeconds(row.Duration)},
	}}
	output := strings.Join(row.LastLines, "\n")
	if problem := junitProblem(row); problem != "" {
		text := row.description()
		if row.Exit != nil && row.Exit.TerminationMessage != "" {
			text += "\n" + row.Exit.TerminationMessage
		}
		c.children = append(c.children, xmlElement{name: problem, text: text, attributes: []xmlAttribute{{"message", row.description()}}})
	} else if output == "" {
		output = row.description()
	}
	if output != "" {
		c.children = append(c.children, xmlElement{name: "system-out", text: output})
	}
	return c
}

// junitProblem returns the name of the element that explains why a row has not succeeded, or "" if it
// has succeeded. A container that failed is a JUnit failure; all other failures are JUnit errors.
func junitProblem(row *resultRow) string {
	switch {
	case row.State == rowFailed && row.Exit != nil:
		return "failure"
	case row.State == rowFailed:
		return "error"
	case row.State == rowSkipped:
		return "skipped"
	}
	return ""
}

// formatSeconds formats a duration in seconds with three decimals.
func formatSeconds(d time.Duration) string { return fmt.Sprintf("%.3f", d.Seconds()) }
