package runonce

import (
	"encoding/json"
	"io"
	"time"
)

// A jsonReport is the report of a run in JSON.
type jsonReport struct {
	Outcome     outcome   `json:"outcome"`
	Code        int       `json:"code"`
	Why         string    `json:"why,omitempty"`
	PodCount    int       `json:"pods"`
	FailedCount int       `json:"failed"`
	StartTime   time.Time `json:"began,omitzero"`
	Seconds     float64   `json:"seconds"`
	Results     []jsonRow `json:"results"`
}

// A jsonRow is a resultRow in JSON.
type jsonRow struct {
	Namespace string     `json:"namespace,omitempty"`
	Pod       string     `json:"pod"`
	Container string     `json:"container,omitempty"`
	State     string     `json:"state"` // ok, failed or skipped
	Text      string     `json:"text"`
	Seconds   float64    `json:"seconds"`
	ExitCode  *int32     `json:"exitCode,omitempty"`
	Reason    string     `json:"reason,omitempty"`
	Message   string     `json:"message,omitempty"` // termination message
	Started   *time.Time `json:"started,omitempty"`
	Finished  *time.Time `json:"finished,omitempty"`
	Position  string     `json:"place,omitempty"`
	LastLines []string   `json:"last,omitempty"`
}

var stateWords = map[rowState]string{rowOK: "ok", rowFailed: "failed", rowSkipped: "skipped"}

// writeJSON writes the report of a run in JSON.
func writeJSON(w io.Writer, r *runResult) error {
	out := jsonReport{
		Outcome: r.Verdict.Outcome, Code: r.Verdict.Code, Why: r.Verdict.Why,
		PodCount: r.PodCount, FailedCount: r.FailedCount, StartTime: r.StartTime, Seconds: r.Duration.Seconds(), Results: []jsonRow{},
	}
	for i := range r.Rows {
		row := &r.Rows[i]
		j := jsonRow{
			Namespace: row.Namespace, Pod: row.Pod, Container: row.Container,
			State: stateWords[row.State], Text: row.description(), Seconds: row.Duration.Seconds(),
			Position: row.Position, LastLines: row.LastLines,
		}
		if e := row.Exit; e != nil {
			j.ExitCode, j.Reason, j.Message = &e.Code, e.Reason, e.TerminationMessage
			j.Started, j.Finished = &e.StartedAt, &e.FinishedAt
		}
		out.Results = append(out.Results, j)
	}
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(out)
}
