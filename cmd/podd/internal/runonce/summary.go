package runonce

import (
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"podd/cmd/podd/internal/printer"
)

// A runResult is the result of a run.
type runResult struct {
	Verdict verdict
	// PodCount is the number of pods. FailedCount is the number of failed pods.
	PodCount, FailedCount int
	Rows                  []resultRow
	StartTime             time.Time
	Duration              time.Duration
	// HasSeveralContainers is set if more than one container has output.
	HasSeveralContainers bool
}

// newResult returns the result with the verdict v. podCount is the number of pods, and rows contains
// the rows of these pods. hasSeveralContainers is the value of HasSeveralContainers. startTime and
// endTime are the times at which the run started and ended.
func newResult(v verdict, rows []resultRow, podCount int, hasSeveralContainers bool, startTime, endTime time.Time) runResult {
	failedPods := map[string]bool{}
	for _, r := range rows {
		if r.State == rowFailed {
			failedPods[r.Namespace+"/"+r.Pod] = true
		}
	}
	return runResult{Verdict: v, PodCount: podCount, FailedCount: len(failedPods), Rows: rows, StartTime: startTime, Duration: endTime.Sub(startTime), HasSeveralContainers: hasSeveralContainers}
}

// maxShownLines is the number of last lines of output in a summary.
const maxShownLines = 5

// summary returns the messages at the end of a run: a line for the run, and a line for each row. If
// several containers have output, summary repeats the last lines of each failed container, because
// the output may mix the lines of containers.
func (r *runResult) summary() string {
	var b strings.Builder
	fmt.Fprintf(&b, "podd: %s, %d failed, %s%s\n", printer.FormatCount(r.PodCount, "pod"), r.FailedCount, formatDuration(r.Duration), r.outcomeText())
	width := 0
	for _, row := range r.Rows {
		width = max(width, utf8.RuneCountInString(row.Name))
	}
	for _, row := range r.Rows {
		pad := strings.Repeat(" ", width-utf8.RuneCountInString(row.Name))
		fmt.Fprintf(&b, "  %-4s  %s%s %s\n", row.State, withoutControlChars(row.Name), pad, withoutControlChars(row.description()))
		if row.State != rowFailed || !r.HasSeveralContainers || len(row.LastLines) < 2 {
			continue
		}
		for _, line := range row.LastLines[max(0, len(row.LastLines)-maxShownLines):] {
			fmt.Fprintf(&b, "          | %s\n", withoutControlChars(line))
		}
	}
	return b.String()
}

// outcomeText describes the outcome. It returns "" for outcomeCompleted.
func (r *runResult) outcomeText() string {
	switch r.Verdict.Outcome {
	case outcomeTimedOut:
		return ": timed out"
	case outcomeInterrupted:
		return ": interrupted"
	case outcomeFailing:
		return ": stopped, because " + withoutControlChars(r.Verdict.Failure.Pod.Name) + " cannot succeed"
	case outcomeBroken:
		return ": " + withoutControlChars(r.Verdict.Why)
	case outcomeReady:
		return "; warning: no pod ends by itself (restartPolicy Always), so the run ended when all pods were ready"
	}
	return ""
}
