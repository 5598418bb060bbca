package runonce

import (
	"encoding/xml"
	"fmt"
	"io"
	"strings"
	"time"
)

// These types are the elements of the JUnit format that CI systems read.
type (
	junitSuites struct {
		XMLName xml.Name   `xml:"testsuites"`
		Suite   junitSuite `xml:"testsuite"`
	}
	junitSuite struct {
		Name      string      `xml:"name,attr"`
		Tests     int         `xml:"tests,attr"`
		Failures  int         `xml:"failures,attr"`
		Errors    int         `xml:"errors,attr"`
		Skipped   int         `xml:"skipped,attr"`
		Time      string      `xml:"time,attr"`
		Timestamp string      `xml:"timestamp,attr,omitempty"`
		Cases     []junitCase `xml:"testcase"`
	}
	junitCase struct {
		Class   string        `xml:"classname,attr"`
		Name    string        `xml:"name,attr"`
		File    string        `xml:"file,attr,omitempty"`
		Time    string        `xml:"time,attr"`
		Failure *junitMessage `xml:"failure"`
		Error   *junitMessage `xml:"error"`
		Skipped *junitMessage `xml:"skipped"`
		Out     string        `xml:"system-out,omitempty"`
	}
	junitMessage struct {
		Message string `xml:"message,attr"`
		Text    string `xml:",chardata"`
	}
)

// writeJUnit writes a test case for each row. A container that failed is a JUnit failure;
// all other failures are JUnit errors.
func writeJUnit(w io.Writer, r *runResult) error {
	suite := junitSuite{Name: "podd", Tests: len(r.Rows), Time: formatSeconds(r.Duration)}
	if !r.StartTime.IsZero() {
		suite.Timestamp = r.StartTime.UTC().Format("2006-01-02T15:04:05")
	}
	pods := map[string]int{}
	for i := range r.Rows {
		pods[r.Rows[i].Namespace+"/"+r.Rows[i].Pod]++
	}
	for i := range r.Rows {
		row := &r.Rows[i]
		name := row.Name
		// Omit the name of the container, so that the test case has the same name as if the pod had
		// succeeded.
		if pods[row.Namespace+"/"+row.Pod] == 1 {
			name = strings.TrimSuffix(name, "/"+row.Container)
		}
		c := junitCase{Class: "podd", Name: name, File: row.Position, Time: formatSeconds(row.Duration), Out: strings.Join(row.LastLines, "\n")}
		if row.Namespace != "" {
			c.Class = row.Namespace + "." + row.Pod
		}
		message := &junitMessage{Message: row.description(), Text: row.description()}
		if row.Exit != nil && row.Exit.TerminationMessage != "" {
			message.Text += "\n" + row.Exit.TerminationMessage
		}
		switch {
		case row.State == rowFailed && row.Exit != nil:
			c.Failure = message
			suite.Failures++
		case row.State == rowFailed:
			c.Error = message
			suite.Errors++
		case row.State == rowSkipped:
			c.Skipped = message
			suite.Skipped++
		case c.Out == "":
			c.Out = row.description()
		}
		suite.Cases = append(suite.Cases, c)
	}
	if _, err := io.WriteString(w, xml.Header); err != nil {
		return err
	}
	e := xml.NewEncoder(w) // NewEncoder replaces characters that XML does not permit with U+FFFD
	e.Indent("", "  ")
	if err := e.Encode(junitSuites{Suite: suite}); err != nil {
		return err
	}
	_, err := io.WriteString(w, "\n")
	return err
}

// formatSeconds formats a duration in seconds with three decimals.
func formatSeconds(d time.Duration) string { return fmt.Sprintf("%.3f", d.Seconds()) }
