from benchmarks import stream


def test_the_benchmark_of_streaming_runs_and_judges(tmp_path):
    text = stream.main(tmp_path, rows=2000, rounds=1)
    assert "2,000 rows" in text
    assert "time: " in text
    assert "× a bare scan" in text
    assert "promised 1.5 GB: kept" in text


def test_promises_are_judged_by_the_figures():
    run = {"wall": 1.0, "cpu": 2.0, "peak": 300.0, "before": 200.0}
    text = stream.report({"bare": run, "moments": {**run, "wall": 3.1, "peak": 1700.0}}, 10)
    assert "time: 3.10 × a bare scan (CPU time 1.00 ×); promised 3 ×: not kept" in text
    assert "promised 1.5 GB: not kept" in text
