package jupyter_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/internal/jupyter"
)

func TestParseRemotes(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		urls, tokens string
		want         []jupyter.Remote
	}{
		"nothing":                {"", "t", nil},
		"one":                    {"http://a/", "t", []jupyter.Remote{{URL: "http://a", Token: "t"}}},
		"one, taken as it is":    {"http://a", "t,u v", []jupyter.Remote{{URL: "http://a", Token: "t,u v"}}},
		"one for all":            {"http://a\n,\thttp://b", "t", []jupyter.Remote{{URL: "http://a", Token: "t"}, {URL: "http://b", Token: "t"}}},
		"none":                   {"http://a http://b", "", []jupyter.Remote{{URL: "http://a"}, {URL: "http://b"}}},
		"one for each":           {"http://a,http://b", "t, u", []jupyter.Remote{{URL: "http://a", Token: "t"}, {URL: "http://b", Token: "u"}}},
		"one has none":           {"http://a,http://b", "t,", []jupyter.Remote{{URL: "http://a", Token: "t"}, {URL: "http://b"}}},
		"an address comes twice": {"http://a, https://b/c/ http://a", "t,u,v", []jupyter.Remote{{URL: "http://a", Token: "t"}, {URL: "https://b/c", Token: "u"}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := jupyter.ParseRemotes(tc.urls, tc.tokens)
			require.NoError(t, err)
			require.Empty(t, cmp.Diff(tc.want, got))
		})
	}
	require.NotContains(t, fmt.Sprintf("%v %+v %#v", jupyter.Remote{URL: "u", Token: "hidden"}, []jupyter.Remote{{Token: "hidden"}}, jupyter.Remote{Token: "hidden"}), "hidden")
}

func TestParseRemotesRefuses(t *testing.T) {
	t.Parallel()
	for urls, says := range map[string]string{
		"a": "scheme", "http://a,ftp://b": "scheme", "http://": "no host",
		"http://u:hidden@a": "put the token into COPPICE_PYTHON_GATEWAY_TOKEN", "http://a?token=hidden": "put the token into COPPICE_PYTHON_GATEWAY_TOKEN",
	} {
		_, err := jupyter.ParseRemotes(urls, "t")
		require.ErrorContains(t, err, says, urls)
		require.NotContains(t, err.Error(), "hidden")
	}
	_, err := jupyter.ParseRemotes("http://a,http://b,http://c", "hidden,t")
	require.EqualError(t, err, "there are 3 addresses of servers and 2 tokens; set one token that opens all, or one for each, in the same order, with commas between them")
	require.ErrorAs(t, err, new(*jupyter.TokensError))
}
