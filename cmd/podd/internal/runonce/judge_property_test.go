package runonce

import (
	"fmt"
	"testing"

	v1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"
)

// TestJudge_Properties checks judge for runs in which pods become ready and end in a random order. Pods
// that run to completion start only after all long-running pods were ready at the same time. A run ends,
// with the right exit code, if and only if all pods that run to completion have ended. A run with only
// long-running pods ends when all of them are ready.
func TestJudge_Properties(t *testing.T) {
	policies := []v1.RestartPolicy{always, onFailure, never}
	templates := map[v1.RestartPolicy]runPod{}
	for _, p := range policies {
		templates[p] = newPod(t, "p", p, "c")
	}
	rapid.Check(t, func(t *rapid.T) {
		in := judgeInput{StartTime: start, Now: after(1)}
		codes := map[int]int32{} // exit codes of the pods that have ended, by index
		completionPods := 0      // number of pods that run to completion
		for i := range rapid.IntRange(1, 5).Draw(t, "pods") {
			p := templates[rapid.SampledFrom(policies).Draw(t, "policy")]
			copied := *p.Desired
			copied.Key.Name = fmt.Sprintf("p%d", i)
			p.Desired, p.Name = &copied, copied.Key.Name
			if !p.isLongRunning() {
				completionPods++
			}
			in.Pods = append(in.Pods, p)
		}
		for range 200 {
			j := judge(in)
			if in.CompletionPodsStarted && !j.CompletionPodsStarted {
				t.Fatal("got CompletionPodsStarted false after true; pods that have started must keep running")
			}
			if j.CompletionPodsStarted && !in.CompletionPodsStarted && !allReady(in.Pods) {
				t.Fatal("got CompletionPodsStarted true before all long-running pods were ready at the same time")
			}
			in.CompletionPodsStarted = j.CompletionPodsStarted
			if done := completionPods == len(codes) && (completionPods > 0 || allReady(in.Pods)); done != (j.Verdict != nil) {
				t.Fatalf("got verdict %v, want a verdict: %t, because %d of %d pods that run to completion have ended", j.Verdict, done, len(codes), completionPods)
			}
			if j.Verdict != nil {
				if want := runCode(codes); j.Verdict.Code != want {
					t.Fatalf("got exit code %d of the run, want %d for the exit codes %v of its pods", j.Verdict.Code, want, codes)
				}
				return
			}
			i := rapid.IntRange(0, len(j.DesiredPods)-1).Draw(t, "which")
			index := startedPodIndex(in.Pods, in.CompletionPodsStarted, i)
			p := &in.Pods[index]
			switch {
			case p.isLongRunning() && rapid.Bool().Draw(t, "ready"):
				*p = withReportAt(*p, 1, setReady)
			case p.isLongRunning():
				*p = withReportAt(*p, 1)
			case !p.hasFinished() && rapid.Bool().Draw(t, "ends"):
				codes[index] = rapid.SampledFrom([]int32{0, 0, 1, 3, 137}).Draw(t, "code")
				*p = withReportAt(*p, 1, setExit("c", codes[index], 1, 1), setFinished)
			}
		}
	})
}

// allReady reports whether all long-running pods are ready.
func allReady(pods []runPod) bool {
	for i := range pods {
		if pods[i].isLongRunning() && !pods[i].isReady() {
			return false
		}
	}
	return true
}

// startedPodIndex returns the index in pods of the n-th started pod; n begins with 0.
func startedPodIndex(pods []runPod, completionPodsStarted bool, n int) int {
	for i := range pods {
		if !pods[i].isLongRunning() && !completionPodsStarted {
			continue
		}
		if n--; n < 0 {
			return i
		}
	}
	panic("at most n pods have started")
}

// runCode returns the expected exit code of a run. The map codes contains the exit codes of the pods
// that have ended.
func runCode(codes map[int]int32) int {
	failed, code := 0, 0
	for _, c := range codes {
		if c != 0 {
			failed++
			code = int(c)
		}
	}
	if failed > 1 {
		return exitCodeSeveralFailed
	}
	return code
}
