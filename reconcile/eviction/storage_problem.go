package eviction

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"podd/manifest"
	"podd/manifest/order"
	"podd/reconcile/state"
)

// reportProblems reports the problems of a round if they differ from those of the previous round.
func (k *StorageLimiter) reportProblems(ctx context.Context, problems []manifest.Problem) {
	order.Slice(problems, func(a, b manifest.Problem) int {
		return cmp.Or(cmp.Compare(a.Pod.String(), b.Pod.String()), cmp.Compare(a.Message, b.Message))
	})
	if slices.Equal(problems, k.reportedProblems) {
		return
	}
	k.reportedProblems = problems
	if k.o.ReportProblems != nil {
		k.o.ReportProblems(ctx, problems)
	}
}

// unenforcedLimitProblems returns a problem for each critical pod that exceeds a limit. The problems
// omit the usage, because it may change in each round.
func unenforcedLimitProblems(measurements []*measurement) (problems []manifest.Problem) {
	for _, m := range measurements {
		if m.unenforcedLimit == nil {
			continue
		}
		reason := strings.TrimSuffix(m.unenforcedLimit.Reason, ".")
		problems = append(problems, newProblem(m.report, fmt.Sprintf("%s; podd does not evict the pod, because it is critical; raise the limit or write less", reason)))
	}
	return problems
}

// newProblem returns a problem of the pod of r. The problem has no position if the pod is being
// deleted.
func newProblem(r *state.Report, message string) manifest.Problem {
	p := manifest.Problem{Severity: manifest.Warning, Pod: r.Key, Message: fmt.Sprintf("pod %s: %s", r.Key, message)}
	if v := r.Version; v != nil {
		p.Path, p.Position.Line = v.Origin.Path, uint32(v.Origin.Line)
	}
	return p
}
