package podlog

import (
	"path/filepath"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"podd/reconcile/rotate"
	"podd/runtime/logs"
	"podd/server"
)

// NewLister returns a function that returns the logs of all pods in the current View. For pods
// that have not changed since its last call, the function returns the previous result. Only one
// goroutine at a time may call the function.
func NewLister(state server.Viewer) func() []rotate.Log {
	var last *server.View
	var all []rotate.Log
	byPod := map[*server.PodView][]rotate.Log{}
	return func() []rotate.Log {
		v := state.View()
		if v == last {
			return all
		}
		listed := make(map[*server.PodView][]rotate.Log, len(v.Pods))
		all = all[:0]
		for _, p := range v.Pods {
			logs, isListed := byPod[p]
			if !isListed {
				logs = podLogs(p)
			}
			listed[p] = logs
			all = append(all, logs...)
		}
		last, byPod = v, listed
		return all
	}
}

func podLogs(p *server.PodView) []rotate.Log {
	var all []rotate.Log
	key := types.NamespacedName{Namespace: p.Pod.Namespace, Name: p.Pod.Name}
	dir := logs.DirName(key, p.Pod.UID)
	for c := range server.ContainerStatuses(p.Pod) {
		if l, ok := containerLog(dir, c, p.Attempts); ok {
			all = append(all, l)
		}
	}
	return all
}

// containerLog returns the log of one container. ok is false if the container never ran.
// attempts is the field Attempts of server.PodView.
func containerLog(dir string, c *v1.ContainerStatus, attempts map[string]uint32) (log rotate.Log, ok bool) {
	_, id, _ := strings.Cut(c.ContainerID, "://")
	attempt, differs := attempts[id]
	if !differs {
		attempt = uint32(c.RestartCount)
	}
	l := rotate.Log{Dir: filepath.Join(dir, c.Name), Attempt: attempt}
	if c.State.Running != nil {
		l.ID = id
	}
	return l, c.ContainerID != "" && filepath.IsLocal(l.Dir)
}
