package altershielddouble

import "testing"

func TestSignMatchesTheVectorsOfTheProtocol(t *testing.T) {
	for want, tc := range map[string]struct{ timestamp, body, token string }{
		"M38WRU7HVU9NPVW0GJEC64VWRGFLG2TC8ZRQHOYJUAG=": {"1700000000000", `{"a":1}`, "altershield-operator"},
		"HLKS5W1W0ULX1PLH_2ZSNO8VLGVDNXOGC7ND1DKXKHE=": {"1700000000", `{"a":1}`, "123"},
		"X2VGF-VHUJAEICUVIQKLXSOFF7MJC6Y62JJLFCKKZWG=": {"1700000000000", "{\"msg\":\r\n\"变更\"}\n", "altershield-operator"},
		"3EWMK_DLEDOYCCZXIIIV9-CNRKRFQ1TFHYUU6XDCFOG=": {"1700000000002", `{}`, "t"},
	} {
		if got := sign(tc.timestamp, tc.body, tc.token); got != want {
			t.Errorf("%+v: got %s, want %s", tc, got, want)
		}
	}
}
