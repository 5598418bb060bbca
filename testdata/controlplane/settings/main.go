// Command settings records the settings of the kubelet: its flags, its feature gates, and the
// configuration with all defaults that it serves at /configz. It also records the names of the kubelet's
// metrics and the reasons of its events. See package controlplane for how to run it.
package main

import (
	"cmp"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/component-base/configz"
	_ "k8s.io/component-base/logs/json/register" // registers the flags of the format json
	kubeletconfig "k8s.io/kubelet/config/v1beta1"
	_ "k8s.io/kubernetes/cmd/kubelet/app" // registers the feature gates
	"k8s.io/kubernetes/cmd/kubelet/app/options"
	internal "k8s.io/kubernetes/pkg/kubelet/apis/config"
	"k8s.io/kubernetes/pkg/kubelet/apis/config/scheme"
)

// configDir, eventDir and metricsDir are the directories of the packages that compare podd with the recordings.
const (
	configDir  = "../../cmd/podd/internal/config"
	eventDir   = "../../reconcile/event"
	metricsDir = "../../server/metrics"
)

func main() {
	texts := map[string]string{}
	for file, record := range map[string]func() (string, error){
		configDir + "/feature_gates.txt":          featureGates,
		configDir + "/former_feature_gates.txt":   formerFeatureGates,
		configDir + "/testdata/kubelet-flags.txt": flags,
		configDir + "/testdata/configz.json":      defaults,
		eventDir + "/testdata/reasons.txt":        eventReasons,
		metricsDir + "/testdata/kubelet.txt":      metricNames,
	} {
		text, err := record()
		if err != nil {
			exit(file, err)
		}
		texts[file] = text
	}
	for file, text := range texts { // after formerFeatureGates has read the earlier recording
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			exit(file, err)
		}
	}
}

func exit(file string, err error) {
	fmt.Fprintf(os.Stderr, "recording %s: %v\n", file, err)
	os.Exit(1)
}

// featureGates returns one line for each feature gate: its name, its default, its stage, and "locked" if
// the kubelet rejects any other value. kubelet --help does not print the locked gates.
func featureGates() (string, error) {
	var lines []string
	for name, spec := range utilfeature.DefaultMutableFeatureGate.GetAll() {
		line := fmt.Sprintf("%s %t %s", name, spec.Default, cmp.Or(string(spec.PreRelease), "GA"))
		if spec.LockToDefault {
			line += " locked"
		}
		lines = append(lines, line+"\n")
	}
	slices.Sort(lines)
	return strings.Join(lines, ""), nil
}

// formerFeatureGates returns the names of the feature gates that only earlier kubelets had, one a line: those
// that were recorded before, and those that this kubelet no longer has.
func formerFeatureGates() (string, error) {
	names := map[string]bool{}
	for _, file := range []string{"former_feature_gates.txt", "feature_gates.txt"} {
		text, err := os.ReadFile(filepath.Join(configDir, file))
		if err != nil {
			return "", err
		}
		for line := range strings.Lines(string(text)) {
			names[strings.Fields(line)[0]] = true
		}
	}
	for name := range utilfeature.DefaultMutableFeatureGate.GetAll() {
		delete(names, string(name))
	}
	return strings.Join(slices.Sorted(maps.Keys(names)), "\n") + "\n", nil
}

// flags returns the names of all flags, one a line, including those that kubelet --help hides.
func flags() (string, error) {
	config, err := options.NewKubeletConfiguration()
	if err != nil {
		return "", err
	}
	set := pflag.NewFlagSet("kubelet", pflag.ContinueOnError)
	options.NewKubeletFlags().AddFlags(set)
	options.AddKubeletConfigFlags(set, config)
	options.AddGlobalFlags(set)
	names := []string{"help\n"} // the command adds this flag
	set.VisitAll(func(f *pflag.Flag) { names = append(names, f.Name+"\n") })
	slices.Sort(names)
	return strings.Join(names, ""), nil
}

// defaults returns the response of /configz for a configuration file without settings.
func defaults() (string, error) {
	s, _, err := scheme.NewSchemeAndCodecs()
	if err != nil {
		return "", err
	}
	file, config := &kubeletconfig.KubeletConfiguration{}, &internal.KubeletConfiguration{}
	s.Default(file)
	if err := s.Convert(file, config, nil); err != nil {
		return "", err
	}
	versioned, err := s.ConvertToVersion(config, kubeletconfig.SchemeGroupVersion)
	if err != nil {
		return "", err
	}
	configzEntry, err := configz.New("kubeletconfig")
	if err != nil {
		return "", err
	}
	if err := configzEntry.Set(versioned); err != nil {
		return "", err
	}
	mux := http.NewServeMux()
	configz.InstallHandler(mux)
	response := httptest.NewRecorder()
	mux.ServeHTTP(response, httptest.NewRequest(http.MethodGet, configz.DefaultConfigzPath, nil))
	return response.Body.String(), nil
}
