package eviction

import (
	"errors"
	"fmt"
	"io/fs"
	"syscall"

	"k8s.io/apimachinery/pkg/types"

	"podd/manifest"
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

// recordFailures records the failures of a round, logs new failures, and returns the problems.
func (k *StorageLimiter) recordFailures(measurements []*measurement) (problems []manifest.Problem) {
	now := map[podPart]measureFailure{}
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
	return problems
}

// unmeasuredProblem returns the problem that a part of a pod cannot be measured because of
// err.
func unmeasuredProblem(r *state.Report, part string, err error) manifest.Problem {
	remedy := measuringRemedy(err)
	if part == layersPart {
		remedy = "check the container runtime"
	}
	if path := (*fs.PathError)(nil); errors.As(err, &path) {
		err = path // omit the wrapping messages, because they contain the part, which is already in the problem
	}
	return newProblem(r, fmt.Sprintf("podd does not count %s toward the storage limits of the pod, because measuring failed: %v; %s", part, err, remedy))
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
