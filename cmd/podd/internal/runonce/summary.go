package runonce

import (
	"fmt"
	"strings"
	"time"
	"unicode/utf8"
)

// A Result is the result of a run.
type Result struct {
	Verdict Verdict
	// Pods is the number of pods, and Failed that of failed pods.
	Pods, Failed int
	Rows         []Row
	Began        time.Time
	Took         time.Duration
	// Several is set if more than one container has output.
	Several bool
}

func newResult(v Verdict, rows []Row, pods int, began, now time.Time) Result {
	failed := map[string]bool{}
	for _, r := range rows {
		if r.State == Failed {
			failed[r.Namespace+"/"+r.Pod] = true
		}
	}
	return Result{Verdict: v, Pods: pods, Failed: len(failed), Rows: rows, Began: began, Took: now.Sub(began)}
}

// shownLines is the number of last lines that a summary repeats.
const shownLines = 5

// Summary returns the messages at the end of a run: a line for the run and one for each
// row. It repeats the last lines of failed containers if the output of others may stand
// between them.
func (r *Result) Summary() string {
	var b strings.Builder
	fmt.Fprintf(&b, "podd: %s, %d failed, %s%s\n", plural(r.Pods, "pod"), r.Failed, formatDuration(r.Took), r.outcomeText())
	width := 0
	for _, row := range r.Rows {
		width = max(width, utf8.RuneCountInString(row.Name))
	}
	for _, row := range r.Rows {
		pad := strings.Repeat(" ", width-utf8.RuneCountInString(row.Name))
		fmt.Fprintf(&b, "  %-4s  %s%s %s\n", row.State, plain(row.Name), pad, plain(row.Text))
		if row.State != Failed || !r.Several || len(row.Last) < 2 {
			continue
		}
		for _, line := range row.Last[max(0, len(row.Last)-shownLines):] {
			fmt.Fprintf(&b, "          | %s\n", plain(line))
		}
	}
	return b.String()
}

// outcomeText describes the outcome unless the run just ended.
func (r *Result) outcomeText() string {
	switch r.Verdict.Outcome {
	case TimedOut:
		return ": timed out"
	case Interrupted:
		return ": interrupted"
	case Failing:
		return ": ended, since " + plain(r.Verdict.Failure.Pod.Name) + " cannot come right"
	case Broken:
		return ": " + plain(r.Verdict.Why)
	case Ready:
		return "; warning: no pod ends by itself (restartPolicy Always), so being ready ended the run"
	}
	return ""
}
