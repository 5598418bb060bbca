package plan

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"podd/manifest"
	"podd/manifest/decode"
	"podd/manifest/refs"
	"podd/runtime"
)

// decodePod decodes a manifest with one pod.
func decodePod(text string, written bool) (*manifest.Pod, error) {
	file := decode.File([]byte(text), decode.Options{Path: "test.yaml", IsWrittenByAPI: written})
	if len(file.Pods) != 1 {
		return nil, fmt.Errorf("no pod: %v", file.Problems)
	}
	return file.Pods[0], nil
}

func code(text string) int32 {
	n, err := strconv.ParseInt(text, 10, 32)
	if err != nil {
		panic(err)
	}
	return int32(n)
}

func (s *stage) exits(args []string) error {
	reason := ""
	if len(args) > 2 {
		reason = args[2]
	}
	if !s.exit(args[0], code(args[1]), reason) {
		return fmt.Errorf("no container %s runs", args[0])
	}
	return nil
}

// newest returns the ID of the newest container of a name; "" if there is none.
func (s *stage) newest(name string) string {
	for i := range s.machine {
		for _, c := range slices.Backward(s.machine[i].Containers) {
			if c.Name == name {
				return c.ID
			}
		}
	}
	return ""
}

func (s *stage) change(name string, state runtime.ContainerState) error {
	s.each(s.newest(name), func(c *runtime.Container) { c.State = state })
	return nil
}

func (s *stage) drop(args []string) error {
	s.remove(s.newest(args[0]))
	return nil
}

func (s *stage) sandbox(args []string) error {
	if len(s.machine) == 0 {
		return errors.New("no sandbox")
	}
	switch inc := &s.machine[0]; args[0] {
	case "dies":
		s.stopSandbox(inc.ID)
	case "gone":
		inc.ID, inc.Ready, inc.Annotations, inc.Attempt = "", false, nil, 0
		if len(inc.Containers) == 0 {
			s.machine = s.machine[1:]
		}
	case "doubled":
		twin := runtime.Incarnation{Sandbox: inc.Sandbox}
		twin.ID, twin.Attempt = s.id("s"), inc.Attempt+1
		s.machine = append([]runtime.Incarnation{twin}, s.machine...)
	default:
		return fmt.Errorf("unknown argument %s", args[0])
	}
	return nil
}

func (s *stage) foreign(args []string) error {
	if args[0] == "ends" {
		s.machine = slices.DeleteFunc(slices.Clone(s.machine), func(i runtime.Incarnation) bool { return i.Foreign })
		return nil
	}
	s.machine = append(slices.Clone(s.machine), runtime.Incarnation{
		Sandbox: runtime.Sandbox{ID: s.id("s"), UID: types.UID(args[0]), Ready: true, Foreign: true},
		Containers: []runtime.Container{{ID: s.id("c"), Name: "app", State: runtime.Running,
			Annotations: map[string]string{runtime.AnnotationPodTerminationGracePeriod: "7"}}},
	})
	return nil
}

func (s *stage) image(args []string) error {
	s.images[args[0]] = errors.New(strings.Join(args[1:], " "))
	if args[1] == "ok" {
		delete(s.images, args[0])
	}
	return nil
}

func (s *stage) health(args []string) error {
	subject := RunProbe{Container: args[0], Kind: ProbeKind(args[1])}.Subject()
	if s.failing[subject] = strings.Join(args[2:], " "); s.failing[subject] == "ok" {
		delete(s.failing, subject)
	}
	return nil
}

func (s *stage) volume(args []string) error {
	s.volumes = errors.New(strings.Join(args, " "))
	if args[0] == "ok" {
		s.volumes = nil
	}
	return nil
}

// object sets the state of the objects of a version.
func (s *stage) object(args []string) error {
	p := s.pods[args[0]]
	if p == nil {
		return fmt.Errorf("no pod %s", args[0])
	}
	o := s.objects[p.Hash]
	switch text := strings.Join(args[2:], " "); args[1] {
	case "missing":
		o.Blocker = refs.Blocker{MissingMessage: text, Reason: "CreateContainerConfigError"}
	case "soon":
		o.Blocker = refs.Blocker{MissingMessage: text, EndsByItself: true}
	case "volume":
		o.Blocker = refs.Blocker{MissingMessage: text, Volume: "conf"}
	case "refused":
		o.Blocker = refs.Blocker{MissingMessage: text, Volume: "conf", Remedy: "delete the pod"}
	case "there":
		o.Blocker = refs.Blocker{}
	case "hold":
		o.FilesDigest = text
	default:
		return fmt.Errorf("unknown word %s", args[1])
	}
	s.objects[p.Hash] = o
	return nil
}

func (s *stage) node(args []string) error {
	n := &s.in.Node
	switch args[0] {
	case "up":
		n.RuntimeReachable, n.RuntimeMessage = true, ""
	case "down":
		n.RuntimeReachable, n.RuntimeMessage = false, "the runtime does not respond"
	case "unready":
		n.RuntimeReady, n.RuntimeMessage = false, "the runtime is not ready"
	case "ready":
		n.RuntimeReady, n.RuntimeMessage = true, ""
	case "nonetwork":
		n.NetworkReady, n.NetworkMessage = false, "cni plugin not initialized"
	case "network":
		n.NetworkReady, n.NetworkMessage = true, ""
	case "adopt":
		n.AdoptKubeletPods = true
	case "dead": // the next words are EXTRA and MINAGE
		extra, err := strconv.Atoi(args[1])
		if err != nil {
			return err
		}
		n.DeadContainers.Extra = extra
		n.DeadContainers.MinAge, err = time.ParseDuration(args[2])
		return err
	case "leaves": // the next word is GRACE
		n.ShuttingDown = true
		grace, err := time.ParseDuration(args[1])
		s.in.Eviction = &Eviction{UID: s.in.Desired.UID, Hash: s.in.Desired.Hash, Reason: ReasonTerminated, Message: TerminatedMessage, Grace: grace}
		return err
	case "stays":
		n.ShuttingDown = false
	default:
		return fmt.Errorf("unknown word %s", args[0])
	}
	return nil
}

func (s *stage) verdict(args []string) error {
	s.in.Verdict = Verdict{Message: strings.Join(args[1:], " ")}
	switch args[0] {
	case "wait":
		s.in.Verdict.Answer = Wait
	case "reject":
		s.in.Verdict.Answer = Reject
	}
	return nil
}

func (s *stage) evict(args []string) error {
	grace, err := time.ParseDuration(args[0])
	e := &Eviction{Message: "The node was low on resource: memory. ", Grace: grace, Restarts: true}
	switch {
	case s.in.Desired != nil:
		e.UID, e.Hash = s.in.Desired.UID, s.in.Desired.Hash
		s.in.Eviction = e
	case s.in.Deletion != nil:
		s.in.Deletion = s.in.Deletion.WithEviction(e, s.in.Now)
	default:
		err = errors.Join(err, errors.New("no pod"))
	}
	return err
}

func (s *stage) deletes(args []string) error {
	grace, err := time.ParseDuration(args[0])
	of := s.in.Desired
	for _, inc := range s.in.Observed {
		if of == nil {
			of = &manifest.Pod{UID: inc.UID}
		}
	}
	if err != nil || of == nil {
		return errors.Join(err, errors.New("no pod"))
	}
	s.in.Deletion = &Deletion{UID: of.UID, Grace: grace, At: s.in.Now}
	return nil
}
