package runonce

import (
	"fmt"
	"testing"

	v1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"
)

// TestLaws: whatever the order in which pods become ready and end, a run ends
// when the last pod that ends has, and not before, with the right code; and no
// such pod is started before all that go on were ready at once.
func TestLaws(t *testing.T) {
	policies := []v1.RestartPolicy{always, onFailure, never}
	templates := map[v1.RestartPolicy]Pod{}
	for _, p := range policies {
		templates[p] = podOf(t, "p", p, "c")
	}
	rapid.Check(t, func(t *rapid.T) {
		in := Input{Began: at, Now: after(1)}
		codes := map[int]int32{} // of the pods that ended
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
			j := Judge(in)
			if in.Released && !j.Released {
				t.Fatal("what was started is no longer")
			}
			if j.Released && !in.Released && !allReady(in.Pods) {
				t.Fatal("started the pods that end before the others were ready")
			}
			in.Released = j.Released
			if done := ending == len(codes) && (ending > 0 || allReady(in.Pods)); done != (j.Verdict != nil) {
				t.Fatalf("verdict %v with %d of %d ended", j.Verdict, len(codes), ending)
			}
			if j.Verdict != nil {
				if want := codeOf(codes); j.Verdict.Code != want {
					t.Fatalf("code %d, want %d of %v", j.Verdict.Code, want, codes)
				}
				return
			}
			i := rapid.IntRange(0, len(j.Start)-1).Draw(t, "which")
			step := startedAt(in.Pods, in.Released, i)
			p := &in.Pods[step]
			switch {
			case p.isLongRunning() && rapid.Bool().Draw(t, "ready"):
				*p = heard(*p, 1, isReady)
			case p.isLongRunning():
				*p = heard(*p, 1)
			case !p.hasEnded() && rapid.Bool().Draw(t, "ends"):
				codes[step] = rapid.SampledFrom([]int32{0, 0, 1, 3, 137}).Draw(t, "code")
				*p = heard(*p, 1, exited("c", codes[step], 1, 1), isFinished)
			}
		}
	})
}

func allReady(pods []Pod) bool {
	for i := range pods {
		if pods[i].isLongRunning() && !pods[i].isReady() {
			return false
		}
	}
	return true
}

// startedAt is the index of the n-th started pod.
func startedAt(pods []Pod, released bool, n int) int {
	for i := range pods {
		if !pods[i].isLongRunning() && !released {
			continue
		}
		if n--; n < 0 {
			return i
		}
	}
	panic("fewer pods were started")
}

func codeOf(codes map[int]int32) int {
	failed, code := 0, 0
	for _, c := range codes {
		if c != 0 {
			failed++
			code = int(c)
		}
	}
	if failed > 1 {
		return CodeSeveral
	}
	return code
}
