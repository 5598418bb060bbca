package runonce

import (
	"fmt"
	"testing"

	v1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"
)

// TestJudge_Properties checks runs in which pods become ready and end in a random order. A
// run ends, with the right exit code, if and only if all pods that end by themselves have
// ended. These pods start only after all long-running pods were ready at the same time.
func TestJudge_Properties(t *testing.T) {
	policies := []v1.RestartPolicy{always, onFailure, never}
	templates := map[v1.RestartPolicy]runPod{}
	for _, p := range policies {
		templates[p] = newPod(t, "p", p, "c")
	}
	rapid.Check(t, func(t *rapid.T) {
		in := judgeInput{StartTime: at, Now: after(1)}
		codes := map[int]int32{} // exit codes of the pods that have ended, by index
		ending := 0
		for i := range rapid.IntRange(1, 5).Draw(t, "pods") {
			p := templates[rapid.SampledFrom(policies).Draw(t, "policy")]
			copied := *p.Desired
			copied.Key.Name = fmt.Sprintf("p%d", i)
			p.Desired, p.Name = &copied, copied.Key.Name
			if !p.isLongRunning() {
				ending++
			}
			in.Pods = append(in.Pods, p)
		}
		for range 200 {
			j := judge(in)
			if in.CompletionPodsStarted && !j.CompletionPodsStarted {
				t.Fatal("got fewer pods to run than before; started pods must keep running")
			}
			if j.CompletionPodsStarted && !in.CompletionPodsStarted && !allReady(in.Pods) {
				t.Fatal("started pods that end by themselves before all long-running pods were ready")
			}
			in.CompletionPodsStarted = j.CompletionPodsStarted
			if done := ending == len(codes) && (ending > 0 || allReady(in.Pods)); done != (j.Verdict != nil) {
				t.Fatalf("got verdict %v when %d of %d pods have ended", j.Verdict, len(codes), ending)
			}
			if j.Verdict != nil {
				if want := runCode(codes); j.Verdict.Code != want {
					t.Fatalf("got code %d, want %d for exit codes %v", j.Verdict.Code, want, codes)
				}
				return
			}
			i := rapid.IntRange(0, len(j.DesiredPods)-1).Draw(t, "which")
			index := startedPod(in.Pods, in.CompletionPodsStarted, i)
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

func allReady(pods []runPod) bool {
	for i := range pods {
		if pods[i].isLongRunning() && !pods[i].isReady() {
			return false
		}
	}
	return true
}

// startedPod returns the index of the n-th started pod.
func startedPod(pods []runPod, released bool, n int) int {
	for i := range pods {
		if !pods[i].isLongRunning() && !released {
			continue
		}
		if n--; n < 0 {
			return i
		}
	}
	panic("fewer than n pods are started")
}

// runCode returns the exit code of a run. codes contains the exit codes of its pods.
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
