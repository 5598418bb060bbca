package trustbundle_test

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"strings"
	"testing"

	"podd/manifest/manifesttest"
	"podd/manifest/trustbundle"
)

func TestNormalize(t *testing.T) {
	a, b := manifesttest.CACertificate(t, "a"), manifesttest.CACertificate(t, "b")
	withHeader := strings.Replace(a, "-----\n", "-----\nComment: x\n\n", 1)
	for name, test := range map[string]struct {
		texts []string
		want  string
	}{
		"no text":                      {nil, ""},
		"text without a certificate":   {[]string{"none"}, ""},
		"order of the texts":           {[]string{b, a}, b + a},
		"duplicates":                   {[]string{b + a, a + b}, b + a},
		"text between certificates":    {[]string{"first\n" + a + "second\n" + b + "end"}, a + b},
		"header of a block":            {[]string{withHeader + a}, a},
		"block of another type":        {[]string{strings.ReplaceAll(b, "CERTIFICATE", "PRIVATE KEY") + a}, a},
		"lines of another length":      {[]string{reflow(a)}, a},
		"text that ends within a line": {[]string{a + b[:60]}, a},
	} {
		if got := string(trustbundle.Normalize(test.texts...)); got != test.want {
			t.Errorf("%s: got\n%s\nwant\n%s", name, got, test.want)
		}
	}
}

// reflow returns a certificate with 32 characters in each line.
func reflow(certificate string) string {
	var b strings.Builder
	for line := range strings.Lines(certificate) {
		if !strings.HasPrefix(line, "-") && len(line) > 32 {
			line = line[:32] + "\n" + line[32:]
		}
		b.WriteString(line)
	}
	return b.String()
}

func TestCheck(t *testing.T) {
	a, b := manifesttest.CACertificate(t, "a"), manifesttest.CACertificate(t, "b")
	leaf := manifesttest.SelfSigned(t, &x509.Certificate{BasicConstraintsValid: true})
	noConstraints := manifesttest.SelfSigned(t, &x509.Certificate{})
	for name, test := range map[string]struct{ text, want string }{
		"several certificates": {"roots\n" + a + "\n" + b, ""},
		"no block":             {"roots", "contains no PEM block of type CERTIFICATE"},
		"another type":         {a + strings.ReplaceAll(b, "CERTIFICATE", "PUBLIC KEY"), `PEM block 2 has the type "PUBLIC KEY"; remove all blocks except those of type CERTIFICATE`},
		"a header":             {strings.Replace(a, "-----\n", "-----\nComment: x\n\n", 1), "PEM block 1 has headers; remove the headers"},
		"no certificate":       {string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: []byte("x")})), "PEM block 1 is not an X.509 certificate"},
		"not a CA":             {leaf, "PEM block 1 is not the certificate of a CA according to its basic constraints; remove this block"},
		"no basic constraints": {noConstraints, "PEM block 1 is not the certificate of a CA according to its basic constraints; remove this block"},
		"a duplicate":          {a + b + a, "PEM block 3 is the same certificate as PEM block 1; remove one of the blocks"},
		"too large":            {a + strings.Repeat("#", trustbundle.MaxSize), "is too large"},
	} {
		got := ""
		if err := trustbundle.Check(test.text); err != nil {
			got = err.Error()
		}
		if (got == "") != (test.want == "") || !strings.HasPrefix(got, test.want) {
			t.Errorf("%s: got %q, want %q", name, got, test.want)
		}
	}
}

// FuzzNormalize checks that Normalize and Check do not panic. The result of Normalize must contain only
// different PEM blocks without headers, and all certificates of a text that Check accepts. Normalize
// must not change its own result.
func FuzzNormalize(f *testing.F) {
	a, b := manifesttest.CACertificate(f, "a"), manifesttest.CACertificate(f, "b")
	for _, text := range []string{
		"", a, a + b, b + "text\n" + a + b, strings.Replace(a, "-----\n", "-----\nComment: x\n\n", 1), reflow(a),
		"-----BEGIN CERTIFICATE-----\n-----END CERTIFICATE-----\n", "-----BEGIN -----\n-----END -----\n", strings.Repeat("-----BEGIN CERTIFICATE-----\n", 100),
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got := trustbundle.Normalize(text)
		count := 0
		for rest := got; len(rest) > 0; count++ {
			block, after := pem.Decode(rest)
			if block == nil || block.Type != "CERTIFICATE" || len(block.Headers) > 0 || bytes.Contains(after, pem.EncodeToMemory(block)) {
				t.Fatalf("Normalize: got\n%s\nwant only certificates, each once", got)
			}
			rest = after
		}
		if again := trustbundle.Normalize(string(got), text); !bytes.Equal(again, got) {
			t.Errorf("Normalize of a normalized bundle: got\n%s\nwant it unchanged:\n%s", again, got)
		}
		if trustbundle.Check(text) == nil && (count == 0 || trustbundle.Check(string(got)) != nil) {
			t.Errorf("Normalize: got\n%s\nwant the certificates of\n%s", got, text)
		}
	})
}
