package config

import (
	"math"
	"path"
	"strings"

	logs "k8s.io/component-base/logs/api/v1"
)

// gateSplitStream is the feature gate of splitStream.
const gateSplitStream = "LoggingAlphaOptions"

// checkLogging checks the options of the log with the rules of the kubelet.
func (c *checker) checkLogging() {
	l := &c.kubelet.Logging
	if len(l.VModule) > 0 && l.Format == "json" {
		c.errorf("logging.vmodule", "cannot be used together with the format json; remove one of them")
	}
	for i, item := range l.VModule {
		at := joinIndex("logging.vmodule", i)
		switch {
		case item.FilePattern == "":
			c.errorf(at, "filePattern is required, for example {filePattern: manager, verbosity: 4}")
		case strings.ContainsAny(item.FilePattern, "=,"):
			c.errorf(at, "filePattern %q must contain neither = nor a comma", item.FilePattern)
		case !isPattern(item.FilePattern):
			c.errorf(at, "filePattern %q has an unclosed [ or ends in a backslash", item.FilePattern)
		case item.Verbosity > math.MaxInt32:
			c.errorf(at, "verbosity %d is too large; must be at most %d", item.Verbosity, math.MaxInt32)
		case !(FileVerbosity{Pattern: item.FilePattern}).matchesAnyFile():
			c.warnf(at, "the pattern %q matches no source file; write the name of a file without .go, or the end of its path, such as plan/*", item.FilePattern)
		}
	}
	c.checkOutput("logging.options.text", l.Options.Text.OutputRoutingOptions)
	c.checkOutput("logging.options.json", l.Options.JSON.OutputRoutingOptions)
}

// isPattern reports whether text is a pattern of path.Match.
func isPattern(text string) bool {
	_, err := path.Match(text, "")
	return err == nil
}

// checkOutput checks the options of one format at a field path.
func (c *checker) checkOutput(field string, o logs.OutputRoutingOptions) {
	if o.SplitStream && !isGateEnabled(c.kubelet, gateSplitStream) {
		c.errorf(field+".splitStream", "needs the feature gate "+gateSplitStream)
	}
	if o.InfoBufferSize.Value() != 0 {
		c.errorf(field+".infoBufferSize", "%s: podd does not buffer its log, so that a crash loses no message; remove this field", o.InfoBufferSize.String())
	}
}

// splitsLog reports whether the log is written to two streams.
func splitsLog(l *logs.LoggingConfiguration) bool {
	if l.Format == "json" {
		return l.Options.JSON.SplitStream
	}
	return l.Options.Text.SplitStream
}
