package daemon

import (
	"testing"

	"podd/server"
)

func TestStatusLine(t *testing.T) {
	ready, waiting := &server.PodView{Ready: true}, &server.PodView{NeedsUser: true}
	for want, v := range map[string]*server.View{
		"0 pods, 0 ready, 0 problems": {},
		"1 pod, 1 ready, 0 problems":  {Pods: []*server.PodView{ready}},
		"2 pods, 1 ready, 1 problem":  {Pods: []*server.PodView{ready, waiting}},
	} {
		if got := statusLine(v); got != want {
			t.Errorf("got status line %q, want %q", got, want)
		}
	}
}
