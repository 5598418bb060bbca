package once

import (
	"fmt"
	"strings"
	"time"
	"unicode/utf8"
)

// Result is what came of a run.
type Result struct {
	Verdict Verdict
	// Pods is how many there are, Failed how many of them failed.
	Pods, Failed int
	Rows         []Row
	Began        time.Time
	Took         time.Duration
	// Several says that the output is of more than one container.
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

// shownLines is how many of the last lines a summary repeats.
const shownLines = 5

// Summary is what a run says at its end: a line for the whole and one for each
// row. The last lines of what failed are repeated where other containers' output
// may stand between.
func (r *Result) Summary() string {
	var b strings.Builder
	fmt.Fprintf(&b, "podd: %s, %d failed, %s%s\n", plural(r.Pods, "pod"), r.Failed, words(r.Took), r.how())
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

// how says what ended a run that did not just end.
func (r *Result) how() string {
	switch r.Verdict.Outcome {
	case TimedOut:
		return ": timed out"
	case Interrupted:
		return ": interrupted"
	case Hopeless:
		return ": ended, since " + plain(r.Verdict.Trouble.Pod.Name) + " cannot come right"
	case Broken:
		return ": " + plain(r.Verdict.Why)
	case Ready:
		return "; warning: no pod ends by itself (restartPolicy Always), so being ready ended the run"
	}
	return ""
}
