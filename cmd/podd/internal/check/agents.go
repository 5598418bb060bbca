package check

import (
	"fmt"
	"strings"
)

// kubeletName is the command name of a kubelet. podd may have the same name.
const kubeletName = "kubelet"

// checkAgents reports other processes that run the pods of this podd or use its directories.
func checkAgents(f *Facts, r *Result) {
	p := f.Processes
	r.Detail = "none"
	if pid := p.runningPID(); pid != 0 {
		r.Detail = fmt.Sprintf("podd is running (PID %d)", pid)
	}
	if p.Err != nil {
		r.warn("mount /proc", "listing the processes of the host: %v", p.Err)
	}
	if pid := p.RootDirPID; pid != 0 && !p.isThisPodd(pid) {
		r.fail("stop that podd, or use another --root-dir", "the root directory %s is in use by the podd with PID %d", f.Config.RootDir, pid)
	}
	if pid := p.SocketPID; pid != 0 && !p.isThisPodd(pid) {
		r.fail("stop that podd, or use another --run-dir", "the socket in the run directory %s is in use by the podd with PID %d", f.Config.RunDir, pid)
	}
	for _, a := range p.Agents {
		if !p.isThisPodd(a.PID) && a.PID != p.RootDirPID && a.PID != p.SocketPID {
			checkAgent(f, a, r)
		}
	}
	if len(r.Problems) > 0 {
		r.Detail = "other agents"
	}
}

func checkAgent(f *Facts, a Agent, r *Result) {
	isKubelet := a.Name == kubeletName
	remedy := "stop that podd, or use other manifests"
	if isKubelet {
		remedy = "stop the kubelet, for example with \"systemctl disable --now kubelet\""
	}
	switch {
	case len(a.SharedManifests) > 0:
		r.fail(remedy, "%s also runs the pods in %s, so these pods run twice", a.describe(), strings.Join(a.SharedManifests, ", "))
	case a.SharesRoot && isKubelet:
		r.fail(remedy+", or use another --root-dir", "%s also uses the root directory %s", a.describe(), f.Config.RootDir)
	case isKubelet:
		r.warn(remedy+", unless podd and the kubelet run different pods", "%s is running; if podd and the kubelet have the same pod, the pod runs twice", a.describe())
	}
}
