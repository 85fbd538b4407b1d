"""Write bertscore_golden.json with bert-score 0.3.13.

python tests/evaluate/make_bertscore_golden.py MINILM_FOLDER
"""

import json
import sys
from pathlib import Path

from bert_score import score

PAIRS = [
    ("The lazy dog sleeps.", "A quick brown fox jumps."),
    ("restart the service with systemctl", "Run systemctl restart nginx to restart the service."),
    ("a", "some random string"),
    ("naïve café – ‘quoted’ 😀", "a naive cafe, quoted"),
    ("sudo apt-get install -y foo\nthen reboot", "install foo with apt and reboot"),
    ("word " * 520, "word count"),
]

if __name__ == "__main__":
    predictions, references = zip(*PAIRS, strict=True)
    # One text a batch: bert-score's padding would otherwise take part where all cosines are negative.
    p, r, f1 = score(
        list(predictions), list(references), model_type=sys.argv[1], num_layers=6, batch_size=1, device="cpu"
    )
    rows = [
        {"prediction": a, "reference": b, "f1": x, "p": y, "r": z}
        for (a, b), x, y, z in zip(PAIRS, f1.tolist(), p.tolist(), r.tolist(), strict=True)
    ]
    path = Path(__file__).with_name("bertscore_golden.json")
    path.write_text(json.dumps(rows, indent=1, ensure_ascii=False) + "\n")
