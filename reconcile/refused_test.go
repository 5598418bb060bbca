package reconcile_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"podd/manifest"
)

// TestRefusedFile_AfterRestart checks that no pod is stopped when podd starts while a file is
// rejected and podd has no valid version of the file. Any pod may be in that file. A pod whose
// manifest is removed while podd runs is stopped at once.
func TestRefusedFile_AfterRestart(t *testing.T) {
	run(t, func(t *testing.T, m *machine) {
		web, other := pod(t, "web", `containers: [{name: app, image: "web:1"}]`), pod(t, "other", `containers: [{name: app, image: "web:1"}]`)
		m.start()
		m.setPods(web, other)
		m.settle()
		m.kill()
		read := func(digest string, pods ...*manifest.Pod) *manifest.Set {
			set := &manifest.Set{
				Pods: map[types.NamespacedName]*manifest.Pod{}, CompleteSources: map[string]bool{source: true},
				FileStates: []manifest.FileState{{Path: "web.yaml", Digest: digest}},
			}
			for _, p := range pods {
				set.Pods[p.Key] = p
			}
			return set
		}
		m.set = read("", other)
		m.start()
		m.settle()
		m.wantState("other 0 ready", "other/app 0 running", "web 0 ready", "web/app 0 running")
		send(m.podd.ctx, m.podd.sets, read(""))
		m.settle()
		m.wantState("web 0 ready", "web/app 0 running")
		send(m.podd.ctx, m.podd.sets, read("sha256:1"))
		m.settle()
		m.wantState()
	})
}
