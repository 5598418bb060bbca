package objects

import (
	"errors"
	"testing"
	"time"

	"podd/manifest/refs"
)

// fakeLimits counts the limit errors of one driver.
type fakeLimits struct{ recorded, handled int }

func (f *fakeLimits) Record(string) int  { f.recorded++; return f.recorded }
func (f *fakeLimits) Handled(string) int { return f.handled }

// TestAttachWait checks when an error of the attacher is final: after refs.AttachTimeout, and only if podd
// has updated the maximum number of volumes after the previous error.
func TestAttachWait(t *testing.T) {
	limit, broken := attachError{error: errors.New("too many"), exceedsLimit: true}, attachError{error: errors.New("broken")}
	for name, test := range map[string]struct {
		waited    time.Duration
		handled   int // result of LimitRecorder.Handled
		errs      []error
		wantFinal bool
		wantCount int
	}{
		"first error after the timeout":        {refs.AttachTimeout, 0, []error{limit}, false, 1},
		"repeated error after the timeout":     {refs.AttachTimeout, 1, []error{limit, limit}, true, 2},
		"no update":                            {refs.AttachTimeout, 0, []error{limit, limit}, false, 2},
		"no update after the previous error":   {refs.AttachTimeout, 1, []error{limit, limit, limit}, false, 3},
		"repeated error before the timeout":    {refs.AttachTimeout - time.Minute, 1, []error{limit, limit}, false, 2},
		"another error before":                 {refs.AttachTimeout, 1, []error{broken, limit}, false, 1},
		"another error last":                   {refs.AttachTimeout, 2, []error{limit, limit, broken}, false, 2},
		"request failed after repeated errors": {refs.AttachTimeout, 2, []error{limit, limit, errors.New("unreachable")}, false, 2},
		"attached":                             {refs.AttachTimeout, 2, []error{limit, limit, nil}, false, 2},
	} {
		w, limits := attachWait{startedAt: time.Now().Add(-test.waited)}, &fakeLimits{handled: test.handled}
		for _, err := range test.errs {
			w.handleError(err, refs.UniqueVolumeName("disk.example", "d1"), limits)
		}
		last, _ := errors.AsType[attachError](w.err)
		if last.isFinal != test.wantFinal || limits.recorded != test.wantCount {
			t.Errorf("%s: got final %t, %d recorded errors; want final %t, %d errors", name, last.isFinal, limits.recorded, test.wantFinal, test.wantCount)
		}
	}
}
