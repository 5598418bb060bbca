package offline

import (
	"io"
	"net/url"
	"regexp"
	"slices"

	"podd/cmd/podd/internal/printer"
	"podd/manifest"
)

// These types are the part of SARIF 2.1.0 that code scanners read
// (https://docs.oasis-open.org/sarif/sarif/v2.1.0/).
type (
	sarifLog struct {
		Schema  string     `json:"$schema"`
		Version string     `json:"version"`
		Runs    []sarifRun `json:"runs"`
	}
	sarifRun struct {
		Tool struct {
			Driver sarifDriver `json:"driver"`
		} `json:"tool"`
		Results []sarifResult `json:"results"`
	}
	sarifDriver struct {
		Name    string      `json:"name"`
		Version string      `json:"version"`
		Rules   []sarifRule `json:"rules"`
	}
	sarifRule struct {
		ID string `json:"id"`
	}
	sarifResult struct {
		RuleID    string          `json:"ruleId"`
		Level     string          `json:"level"`
		Message   sarifText       `json:"message"`
		Locations []sarifLocation `json:"locations,omitempty"`
	}
	sarifText struct {
		Text string `json:"text"`
	}
	sarifLocation struct {
		Physical struct {
			Artifact struct {
				URI string `json:"uri"`
			} `json:"artifactLocation"`
			Region *sarifRegion `json:"region,omitempty"`
		} `json:"physicalLocation"`
	}
	sarifRegion struct {
		StartLine   uint32 `json:"startLine"`
		StartColumn uint32 `json:"startColumn,omitempty"`
	}
)

// printSARIF prints the problems in the SARIF format.
func (r *resultPrinter) printSARIF(w io.Writer) error {
	run := sarifRun{Results: []sarifResult{}}
	run.Tool.Driver = sarifDriver{Name: "podd validate", Version: r.version, Rules: []sarifRule{}}
	for _, p := range r.Problems {
		result := sarifResult{RuleID: ruleID(p), Level: string(p.Severity), Message: sarifText{p.Message}}
		if p.FieldPath != "" {
			result.Message.Text = p.FieldPath + ": " + p.Message
		}
		if p.Path != "" {
			result.Locations = []sarifLocation{problemLocation(p)}
		}
		run.Results = append(run.Results, result)
		if rule := (sarifRule{result.RuleID}); !slices.Contains(run.Tool.Driver.Rules, rule) {
			run.Tool.Driver.Rules = append(run.Tool.Driver.Rules, rule)
		}
	}
	return printer.WriteJSON(w, sarifLog{
		Schema:  "https://json.schemastore.org/sarif-2.1.0.json",
		Version: "2.1.0",
		Runs:    []sarifRun{run},
	})
}

// problemLocation returns the file, line and column of a problem.
func problemLocation(p manifest.Problem) sarifLocation {
	var l sarifLocation
	l.Physical.Artifact.URI = (&url.URL{Path: p.Path}).String()
	if u, err := url.Parse(p.Path); err == nil && u.Scheme != "" {
		l.Physical.Artifact.URI = p.Path
	}
	if p.Position.Line > 0 {
		l.Physical.Region = &sarifRegion{p.Position.Line, p.Position.Column}
	}
	return l
}

// ruleID returns the field without its indices, because scanners group and suppress
// problems by rule.
func ruleID(p manifest.Problem) string {
	if p.FieldPath == "" {
		return "manifest"
	}
	return indices.ReplaceAllString(p.FieldPath, "")
}

var indices = regexp.MustCompile(`\[[^\]]*\]`)
