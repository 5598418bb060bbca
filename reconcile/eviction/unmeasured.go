package eviction

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"syscall"

	"k8s.io/apimachinery/pkg/types"

	"podd/manifest"
	"podd/manifest/order"
	"podd/reconcile/state"
)

// layersPart is the name of the part with the writable layers. The other parts are measured without
// the runtime.
const layersPart = "the writable layers of its containers"

// unmeasuredRounds is the number of consecutive rounds after which a part that cannot be measured
// is reported as a problem. A round is a call of check. A single failure often does not occur again
// in the next round.
const unmeasuredRounds = 3

// A podPart identifies a part of a pod's disk usage, such as a volume.
type podPart struct {
	pod  types.NamespacedName
	uid  types.UID
	part string
}

// A measureFailure contains the number of consecutive rounds in which a part could not be measured,
// and an error.
type measureFailure struct {
	roundCount int
	err        error // the error of the first of these rounds, so that the reported problem does not change in each round
}

// recordFailures records the failures of a round, logs new failures, and reports the problems
// if they have changed.
func (k *StorageLimiter) recordFailures(ctx context.Context, measurements []*measurement) {
	now := map[podPart]measureFailure{}
	var problems []manifest.Problem
	for _, m := range measurements {
		for part, err := range m.errsByPart {
			key := podPart{m.report.Key, m.report.Pod.UID, part}
			f, isOld := k.failures[key]
			if !isOld {
				f.err = err
				k.o.Log.Warn("measuring a part of the disk usage of a pod failed; podd does not count this part toward the storage limits of the pod", "pod", key.pod, "part", part, "err", err)
			}
			f.roundCount++
			now[key] = f
			if f.roundCount >= unmeasuredRounds {
				problems = append(problems, unmeasuredProblem(m.report, part, f.err))
			}
		}
	}
	k.failures = now
	order.Slice(problems, func(a, b manifest.Problem) int {
		return cmp.Or(cmp.Compare(a.Pod.String(), b.Pod.String()), cmp.Compare(a.Message, b.Message))
	})
	if !slices.Equal(problems, k.reportedProblems) {
		k.reportedProblems = problems
		if k.o.ReportProblems != nil {
			k.o.ReportProblems(ctx, problems)
		}
	}
}

// unmeasuredProblem returns the problem that a part of a pod cannot be measured because of
// err. The problem has no position if the pod is being deleted.
func unmeasuredProblem(r *state.Report, part string, err error) manifest.Problem {
	remedy := measuringRemedy(err)
	if part == layersPart {
		remedy = "check the container runtime"
	}
	if path := (*fs.PathError)(nil); errors.As(err, &path) {
		err = path // omit the wrapping messages, because they contain the part, which is already in the problem
	}
	p := manifest.Problem{
		Severity: manifest.Warning, Pod: r.Key,
		Message: fmt.Sprintf("pod %s: podd does not count %s toward the storage limits of the pod, because measuring failed: %v; %s", r.Key, part, err, remedy),
	}
	if v := r.Version; v != nil {
		p.Path, p.Position.Line = v.Origin.Path, uint32(v.Origin.Line)
	}
	return p
}

// measuringRemedy returns an instruction for users that explains how to resolve an error of the
// file system.
func measuringRemedy(err error) string {
	switch {
	case errors.Is(err, syscall.EMFILE), errors.Is(err, syscall.ENFILE):
		return "raise the limit of open files of podd (LimitNOFILE) or the host (fs.file-max)"
	case errors.Is(err, syscall.EIO):
		return "check the disk and its file system"
	}
	return "repair that path or remove the limit"
}
